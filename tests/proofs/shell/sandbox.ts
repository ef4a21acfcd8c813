import { execFile, execFileSync } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { rgPath } from '@vscode/ripgrep'
import { commandEnvironment } from '../../../packages/agent/src/tools/commands/environment.ts'

export interface Sandbox {
  /** The folder that commands see as their own, at the same path as outside. */
  arena: string
  /** Where commands and traces lie. */
  records: string
  home: string
}

/** Whether what it takes is there. */
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

/** Runs a script in a sandbox: no network, everything read-only but these folders and an empty /tmp. */
export async function runInside({ arena, records, home }: Sandbox, script: string, words: string[]): Promise<void> {
  const environment = commandEnvironment({ PATH: `/usr/bin:/bin:${dirname(rgPath)}`, HOME: home, LANG: 'C.UTF-8' })
  const settings = Object.entries(environment).flatMap(([name, value]) => ['--setenv', name, value])
  const folders = [arena, records, home].flatMap((folder) => ['--bind', folder, folder])
  const options = [
    '--unshare-all',
    '--die-with-parent',
    '--new-session',
    '--clearenv',
    '--ro-bind',
    '/',
    '/',
    '--dev',
    '/dev',
  ]
  await promisify(execFile)(
    'bwrap',
    [
      ...options,
      '--proc',
      '/proc',
      '--tmpfs',
      '/tmp',
      ...folders,
      ...settings,
      '--chdir',
      arena,
      'sh',
      '-c',
      script,
      'sh',
      ...words,
    ],
    { maxBuffer: 64 * 1024 * 1024 },
  )
}

export async function writeCommands(folder: string, commands: readonly string[]): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await Promise.all(commands.map((command, index) => writeFile(join(folder, `${index}.sh`), command)))
}

export async function readTrace(folder: string, index: number): Promise<string> {
  return readFile(join(folder, `${index}.trace`), 'utf8').catch(() => '')
}
