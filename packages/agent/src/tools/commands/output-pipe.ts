import { execFileSync } from 'node:child_process'
import { constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface OutputPipe {
  /** Both outputs of the command: one pipe keeps their order. */
  writeFile: number
  reader: () => Socket
}

/**
 * Opens a pipe. Node creates sockets instead of pipes, and a program cannot open a socket through
 * `/dev/stderr`. So this is a named pipe whose name is removed once both ends are open.
 */
export function openOutputPipe(): OutputPipe {
  const folder = mkdtempSync(join(tmpdir(), 'tapetree-pipe-'))
  try {
    const path = join(folder, 'output')
    execFileSync('mkfifo', ['-m', '600', path], { stdio: 'ignore' })
    const readFile = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writeFile = openSync(path, constants.O_WRONLY)
    return { writeFile, reader: () => new Socket({ fd: readFile, readable: true, writable: false }) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
