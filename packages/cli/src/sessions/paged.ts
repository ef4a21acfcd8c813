import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { isInteractive, type Io, type Output } from '../command-line/io.ts'

/** Writes long output through what `PAGER` names, where somebody sits before it; otherwise as it comes. */
export async function paged(io: Io, work: (output: Output) => Promise<void>): Promise<void> {
  const { PAGER: pager = '' } = io.env
  if (!isInteractive(io) || pager.trim() === '') return work(io.stdout)
  // Short output needs no key to leave, and our colours stay colours.
  const env = { LESS: 'FRX', ...io.env }
  const child = spawn('/bin/sh', ['-c', pager], { stdio: ['pipe', 'inherit', 'inherit'], env })
  child.stdin.on('error', () => undefined) // whoever writes is told
  const closed = once(child, 'close')
  const { columns, rows } = io.stdout
  try {
    await work({
      write: (text, done) => child.stdin.write(text, done),
      isTTY: true,
      ...(columns !== undefined && { columns }),
      ...(rows !== undefined && { rows }),
    })
  } catch (error) {
    // Who leaves the pager has seen enough.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  } finally {
    child.stdin.end()
    await closed
  }
}
