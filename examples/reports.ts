import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
import { sqlite } from "@holdfast/inbox/sqlite";

/** A report to be rendered. */
interface Report {
  id: number;
  pages: number;
}

/** `locked_until` selects the lease form. */
export const reportJobs = inbox("report_jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<Report>("payload"),
});
export const reports = reportJobs.queue("reports");

export const render = reports.subscribe({ lease: { minutes: 1 } }, async (report, delivery) => {
  if (delivery.attempt > 1) delivery.log.warn("rendering {id} again", { id: report.id });
  await draw(report, delivery.signal); // takes five minutes; the lease is renewed under it
  return ack();
});

export function service(url: string): App {
  const broker = new Broker(sqlite(url)).createTables(reportJobs).include(render);
  return new App({ name: "reports", version: "0.1.0" }).withBroker(broker);
}

/** A second a page, unless the signal says to stop. */
function draw(report: Report, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, report.pages * 1000);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

if (import.meta.main) await service("reports.db").run();
