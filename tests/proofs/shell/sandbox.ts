import { execFile, execFileSync } from 'node:child_process'
import { cpSync, readdirSync, rmSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { rgPath } from '@vscode/ripgrep'
import { commandEnvironment } from '../../../packages/agent/src/tools/commands/environment.ts'

export interface Sandbox {
  /** The world that commands are judged in; nothing changes it. */
  world: string
  /** A copy that takes its place, at the same path, for commands that run. */
  copy: string
  /** Where commands and traces lie. */
  records: string
}

/** The programs that the proof needs and this machine does not have. */
export function missingPrograms(): string[] {
  return ['bwrap', 'strace', 'bash', 'git'].filter((program) => {
    try {
      execFileSync('which', [program], { stdio: 'ignore' })
      return false
    } catch {
      return true
    }
  })
}

/** The search path of commands in the sandbox. */
export const searchPath = `/usr/bin:/bin:${dirname(rgPath)}`

/**
 * Runs a script in a sandbox: no network, everything read-only except the copy of the world, the records and an empty `/tmp`, where
 * the script finds the unchanged world as `/tmp/pristine`.
 */
export async function runInside({ world, copy, records }: Sandbox, script: string, words: string[]): Promise<void> {
  const environment = commandEnvironment({ PATH: searchPath, HOME: join(world, 'home'), LANG: 'C.UTF-8' })
  const settings = Object.entries(environment).flatMap(([name, value]) => ['--setenv', name, value])
  const isolation = ['--unshare-all', '--die-with-parent', '--new-session', '--clearenv']
  const system = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp']
  const folders = ['--ro-bind', world, '/tmp/pristine', '--bind', copy, world, '--bind', records, records]
  const options = [...isolation, ...system, ...folders, ...settings, '--chdir', world]
  await promisify(execFile)('bwrap', [...options, 'bash', '-c', script, 'bash', ...words], {
    maxBuffer: 64 * 1024 * 1024,
  })
}

/** Makes the copy equal to the world again. The folder itself stays, since it may be mounted. */
export function resetCopy({ world, copy }: Sandbox): void {
  for (const name of readdirSync(copy)) rmSync(join(copy, name), { recursive: true, force: true })
  // Node would resolve relative links against this process's folder.
  cpSync(world, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
}

export async function writeCommands(folder: string, commands: readonly string[]): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await Promise.all(commands.map((command, index) => writeFile(join(folder, `${index}.sh`), command)))
}

export async function readRecord(folder: string, name: string): Promise<string> {
  return readFile(join(folder, name), 'latin1').catch(() => '')
}
