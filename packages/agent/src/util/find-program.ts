import { access, constants, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'

/** The program that the system starts for a name. Relative folders of the path do not count: they mean another program in every working folder. */
export async function findProgram(name: string, path: string | undefined): Promise<string | undefined> {
  for (const folder of (path ?? '').split(delimiter).filter(isAbsolute)) {
    if (await isProgram(join(folder, name))) return join(folder, name)
  }
  return undefined
}

export async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return (await stat(file)).isFile()
  } catch {
    return false // missing, or not executable for us
  }
}
