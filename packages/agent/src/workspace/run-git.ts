import { execFile } from 'node:child_process'
import { delimiter, isAbsolute, parse } from 'node:path'
import type { Clock } from '@tapetree/session/util/wait'
import type { CommandBox } from '../tools/commands/command.ts'
import { inBox } from '../tools/commands/program-box.ts'
import { isInside } from '../util/is-inside.ts'

export interface GitRun {
  /** The folder in which git runs. */
  cwd: string
  /** The working tree around it. Programs inside of it are not found. */
  root: string
  clock: Clock
  limitMs: number
  maxBytes: number
  /** The environment in which git runs. */
  environment?: Readonly<Record<string, string | undefined>>
  /** Ignore the settings of the user and of the machine too, and with them every filter, diff driver and helper. */
  ignoreUser?: boolean
  /** Additional variables, such as GIT_DIR for a repository of our own. */
  variables?: Readonly<Record<string, string>>
  /** Standard input. */
  input?: string | Buffer
  signal?: AbortSignal
  /** The sandbox in which git runs. */
  box?: CommandBox | undefined
}

export type GitResult =
  /** `isCut`: there was more output than fits. */
  | { type: 'ran'; output: Buffer; isCut: boolean }
  /** Missing, too slow or stopped: then there is no message and no exit code. */
  | { type: 'failed'; message: string; output: Buffer; exitCode?: number }

/**
 * Git fetches nothing, runs no hook, watcher, pager or credential helper, and does not mistake a folder that only looks
 * like a git folder for one.
 */
const safeSettings = [
  'safe.bareRepository=explicit',
  'core.fsmonitor=',
  'core.hooksPath=/dev/null',
  'core.pager=cat',
  'core.sshCommand=false',
  'core.attributesFile=/dev/null',
  'credential.helper=',
  'protocol.allow=never',
].flatMap((setting) => ['-c', setting])

/**
 * Runs a git command that only reads, unless the repository is our own. The caller has checked the repository of a user
 * with `repositoryProblem`.
 */
export async function runGit(command: readonly string[], run: GitRun): Promise<GitResult> {
  const {
    cwd,
    root,
    clock,
    limitMs,
    maxBytes,
    environment = process.env,
    ignoreUser = false,
    variables,
    input,
    signal,
    box,
  } = run
  const ended = new AbortController()
  const overdue = new AbortController()
  const watch = clock.wait(limitMs, ended.signal).then(
    () => overdue.abort(),
    () => undefined,
  )
  try {
    return await new Promise((settle) => {
      const whole = ['-C', cwd, ...safeSettings, '--no-optional-locks', '--no-pager', ...command]
      const variablesOfGit = { ...gitEnvironment(environment, root), ...(ignoreUser && withoutUser), ...variables }
      const program = inBox({ file: 'git', args: whole, env: variablesOfGit }, box)
      const options = {
        // Not in the repository: a relative folder in PATH must not find a program there.
        cwd: parse(cwd).root,
        env: program.env,
        maxBuffer: maxBytes,
        encoding: 'buffer' as const,
        signal: AbortSignal.any([overdue.signal, ...(signal ? [signal] : [])]),
        killSignal: 'SIGKILL' as const,
        windowsHide: true,
      }
      const child = execFile(program.file, program.args, options, (error, output, faults) => {
        if (!error) settle({ type: 'ran', output, isCut: false })
        else if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') settle({ type: 'ran', output, isCut: true })
        else {
          const message = faults.toString('utf8').trim()
          settle({ type: 'failed', message, output, ...(typeof error.code === 'number' && { exitCode: error.code }) })
        }
      })
      // A git that ends early reports why; that it did not read everything is no news.
      child.stdin?.on('error', () => undefined)
      child.stdin?.end(input)
    })
  } finally {
    ended.abort()
    await watch
  }
}

const withoutUser = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_ATTR_NOSYSTEM: '1' }

const passed = ['HOME', 'XDG_CONFIG_HOME', 'USERPROFILE', 'SystemRoot']

/**
 * Variables such as GIT_DIR would redirect git. Missing objects are not fetched: that would run the configured remote.
 * Paths are taken as they are, and objects as their ids say.
 */
function gitEnvironment(ours: Readonly<Record<string, string | undefined>>, root: string): Record<string, string> {
  const folders = (ours['PATH'] ?? '').split(delimiter).filter((each) => isAbsolute(each) && !isInside(each, root))
  const known = passed.flatMap((name) => (ours[name] === undefined ? [] : [[name, ours[name]] as const]))
  return {
    ...Object.fromEntries(known),
    PATH: folders.join(delimiter),
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_ALLOW_PROTOCOL: '',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
  }
}
