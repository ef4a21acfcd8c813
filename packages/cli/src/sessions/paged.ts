import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { isInteractive, type Io, type Output } from '../command-line/io.ts'
import { lendTerminal } from '../util/lend-terminal.ts'

/** Pipes long output through `PAGER` on a terminal; otherwise writes it directly. */
export async function paged(io: Io, work: (output: Output) => Promise<void>): Promise<void> {
  const { PAGER: pager = '' } = io.env
  if (!isInteractive(io) || pager.trim() === '') return work(io.stdout)
  await lendTerminal(() => intoPager(io, pager, work))
}

async function intoPager(io: Io, pager: string, work: (output: Output) => Promise<void>): Promise<void> {
  // Short output exits without a key, and the pager passes our color codes through.
  const env = { LESS: 'FRX', ...io.env }
  const child = spawn('/bin/sh', ['-c', pager], { stdio: ['pipe', 'inherit', 'inherit'], env })
  child.stdin.on('error', () => undefined) // the writer receives the error
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
    // Quitting the pager is not an error.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  } finally {
    child.stdin.end()
    await closed
  }
}
