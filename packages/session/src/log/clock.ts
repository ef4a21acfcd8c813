/** ISO times from a clock. Many lines fall into one millisecond, and making the text costs more than asking for the time. */
export function isoClock(now: () => Date): () => string {
  let lastMs = -1
  let lastText = ''
  return () => {
    const date = now()
    const ms = date.getTime()
    if (ms !== lastMs) {
      lastMs = ms
      lastText = date.toISOString()
    }
    return lastText
  }
}
