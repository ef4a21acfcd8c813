const last = new Map<string, Promise<unknown>>()

/** Changes to one file wait for each other, in the order in which they came. The path is the real one; other processes are not kept out. */
export async function inTurn<T>(path: string, work: () => Promise<T>): Promise<T> {
  const before = last.get(path)
  const result = before ? before.then(work, work) : work()
  last.set(path, result)
  try {
    return await result
  } finally {
    if (last.get(path) === result) last.delete(path)
  }
}
