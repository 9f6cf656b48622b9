import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
import { sqlite } from "@holdfast/inbox/sqlite";

/** A report to be rendered. */
export interface Report {
  id: number;
  title: string;
  pages: number;
}

/** What a worker tells the demo, one JSON line for each. */
export type WorkerEvent =
  | { event: "started" | "rendered"; report: number; attempt: number }
  | { event: "page"; report: number; attempt: number; page: number }
  | { event: "stopped" };

export const reportJobs = inbox("report_jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<Report>("payload"),
});
export const reports = reportJobs.queue("reports");

/** Renders reports of this database into files of this folder. */
export function worker(database: string, folder: string): App {
  const render = reports.subscribe({ lease: { seconds: 2 } }, async (report, delivery) => {
    const about = { report: report.id, attempt: delivery.attempt };
    tell({ event: "started", ...about });
    const pages: string[] = [];
    for (let page = 1; page <= report.pages; page++) {
      delivery.signal.throwIfAborted(); // the row is no longer ours, or the app has to stop
      tell({ event: "page", ...about, page });
      pages.push(await renderPage(report, page));
    }
    await save(`${folder}/report-${report.id}.txt`, pages.join("\f"), delivery.attempt);
    tell({ event: "rendered", ...about });
    return ack();
  });
  const broker = new Broker(sqlite(database)).createTables(reportJobs).include(render);
  return new App({ name: "demo-worker" })
    .withBroker(broker)
    .afterShutdown(() => tell({ event: "stopped" }));
}

function tell(event: WorkerEvent): void {
  console.log(JSON.stringify(event));
}

/** A tenth of a second a page. */
async function renderPage({ title, pages }: Report, page: number): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, 100));
  return `${title}\n${"=".repeat(title.length)}\n\nPage ${page} of ${pages}\n`;
}

/** Under its name a report is whole, whenever its worker may die. */
async function save(path: string, text: string, attempt: number): Promise<void> {
  await Deno.writeTextFile(`${path}.${attempt}`, text);
  await Deno.rename(`${path}.${attempt}`, path);
}

if (import.meta.main) {
  const [database = "reports.db", folder = "."] = Deno.args;
  await worker(database, folder).run(); // until SIGTERM, then a graceful stop
}
