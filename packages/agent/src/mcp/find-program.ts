import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'

/** The file that a command means, as the system would look for it: what is asked about and what is started are then the same. */
export async function findProgram(
  command: string,
  { cwd, path }: { cwd: string; path: string | undefined },
): Promise<string | undefined> {
  if (command.includes('/')) return (await isProgram(resolve(cwd, command))) ? resolve(cwd, command) : undefined
  // A folder that is not absolute would mean another program in every working folder.
  for (const folder of (path ?? '').split(delimiter).filter(isAbsolute)) {
    if (await isProgram(join(folder, command))) return join(folder, command)
  }
  return undefined
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return (await stat(file)).isFile()
  } catch {
    return false // it is not there, or not ours to run
  }
}
