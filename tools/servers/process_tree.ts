interface ProcessState {
  readonly pid: number;
  readonly parent: number;
  readonly ended: boolean;
}

/** The process and all that descend from it; the process alone where the system does not tell. */
export async function processTree(root: number): Promise<readonly number[]> {
  const processes = await listProcesses();
  const tree = [root];
  for (const pid of tree) {
    tree.push(...processes.filter(({ parent }) => parent === pid).map(({ pid }) => pid));
  }
  return tree;
}

/** Whether a process still runs: one that ended and that nobody asked about yet does not. */
export async function isRunning(pid: number): Promise<boolean> {
  const state = await processState(pid);
  return state !== undefined && !state.ended;
}

async function listProcesses(): Promise<readonly ProcessState[]> {
  const pids: number[] = [];
  try {
    for await (const { name } of Deno.readDir("/proc")) {
      if (/^[0-9]+$/.test(name)) pids.push(Number(name));
    }
  } catch {
    return [];
  }
  const states = await Promise.all(pids.map(processState));
  return states.filter((state) => state !== undefined);
}

async function processState(pid: number): Promise<ProcessState | undefined> {
  try {
    const stat = await Deno.readTextFile(`/proc/${pid}/stat`);
    // "pid (name) state parent …", where the name may hold anything.
    const [state = "", parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { pid, parent: Number(parent), ended: state === "Z" || state === "X" };
  } catch {
    return undefined;
  }
}
