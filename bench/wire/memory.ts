export interface Memory {
  /** Of the whole process, as the system sees it. */
  rss: number
  /** What the process holds on to: objects, and bytes outside the heap. */
  held: number
}

/** After a collection. The process needs `--expose-gc`. */
export async function settledMemory(): Promise<Memory> {
  for (let round = 0; round < 4; round++) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rss, held: heapUsed + external }
}
