/**
 * Aborted when the terminal of this process has gone away: its window was closed, or the connection to it broke. Not every system and not
 * every shell tells of that with a signal. What is written to it afterwards fails, and nobody is left who could be told.
 */
export function watchTerminal(): AbortSignal {
  const controller = new AbortController()
  const gone = (): void => controller.abort()
  for (const event of ['end', 'close', 'error']) process.stdin.on(event, gone)
  // The listeners stay: also giving the terminal back fails then, and an error that nobody takes would end the process in disorder.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', gone)
  return controller.signal
}
