import { createInterface } from 'node:readline'
import { write, type Io } from './io.ts'

/** Asks a person on the terminal, before any screen is drawn. An end of input is an empty answer. */
export async function askLine(
  { stdin, stderr, signal }: Pick<Io, 'stdin' | 'stderr' | 'signal'>,
  question: string,
): Promise<string> {
  signal.throwIfAborted()
  await write(stderr, question)
  const lines = createInterface({ input: stdin, terminal: false })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const stop = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  lines.once('line', (line) => resolve(line.trim()))
  lines.once('close', () => resolve(''))
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', stop)
    lines.close()
  }
}
