/** Signals that keys of the terminal send to the whole process group, so to the other program and to us. */
const names = ['SIGINT', 'SIGTSTP', 'SIGCONT'] as const

/**
 * Runs while another program, such as an editor or a pager, has the terminal. An interrupt is for that program only. A suspension stops this
 * process too, without its handlers: a shell suspends a job as a whole.
 */
export async function lendTerminal<T>(work: () => Promise<T>): Promise<T> {
  const ignore = (): void => undefined
  const before = names.map((name) => ({ name, listeners: process.listeners(name) }))
  // First, so that an interrupt never has its default effect.
  process.on('SIGINT', ignore)
  for (const { name, listeners } of before) for (const listener of listeners) process.off(name, listener)
  try {
    return await work()
  } finally {
    for (const { name, listeners } of before) for (const listener of listeners) process.on(name, listener)
    process.off('SIGINT', ignore)
  }
}
