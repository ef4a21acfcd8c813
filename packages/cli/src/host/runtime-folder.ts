import { randomBytes } from 'node:crypto'
import { chmod, lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'

/** The socket path of this process in this folder. Creates the folder, which must belong to this user alone. */
export async function socketPathIn(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const found = await lstat(folder)
  const isOurs = found.isDirectory() && found.uid === (process.getuid?.() ?? found.uid)
  if (!isOurs) {
    throw new Failure(
      exitCodes.configuration,
      `${folder} belongs to another user, so tapetree creates no socket there.`,
      {
        type: 'foreign-folder',
        next: ['tapetree doctor'],
      },
    )
  }
  if ((found.mode & 0o077) !== 0) await chmod(folder, 0o700)
  return join(folder, `${process.pid}-${randomBytes(3).toString('hex')}.sock`)
}

/** Removes the sockets of killed processes. */
export async function removeStaleSockets(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, process] = /^(\d+)-[0-9a-f]+\.sock$/.exec(name) ?? []
    if (process !== undefined && !isAlive(Number(process))) await rm(join(folder, name), { force: true })
  }
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
