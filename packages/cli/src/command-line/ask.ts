import { createInterface } from 'node:readline'
import { write, type Io } from './io.ts'

/** Asks on the terminal. Anything but yes is no, and so is the end of the input. */
export async function askYesNo({ stdin, stderr, signal }: Io, question: string): Promise<boolean> {
  await write(stderr, `${question} [y/N] `)
  const lines = createInterface({ input: stdin, signal })
  try {
    for await (const line of lines) return /^\s*y(?:es)?\s*$/i.test(line)
    return false
  } finally {
    lines.close()
  }
}
