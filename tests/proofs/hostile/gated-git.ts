import { execFile, type ExecFileException } from 'node:child_process'
import { access, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { noRules, type Rule } from '../../../packages/agent/src/permissions/rules.ts'
import { judgeCommand } from '../../../packages/agent/src/permissions/judge-command.ts'
import { commandEnvironment } from '../../../packages/agent/src/tools/commands/environment.ts'

export interface GatedPlace {
  root: string
  home: string
  canary: string
  traceFile: string
}

/** What a model tries that looks around, and what rules of the user allow. */
const commands = [
  'status',
  'status --short',
  'diff',
  'diff HEAD',
  'diff --stat',
  'log -p -1',
  'log --oneline -3',
  'show',
  'ls-files -m',
  'blame f.txt',
  'grep dirty',
  'diff --submodule=diff HEAD',
  'branch -a',
  'describe --always',
  'stash list',
]

/** What changes the repository comes last: each command is judged by what it finds. */
const changes = ['add . && git status', 'add .', 'commit -m x']

const rules: Rule[] = [
  { effect: 'allow', type: 'command', match: 'git add *' },
  { effect: 'allow', type: 'command', match: 'git commit *' },
]

/** Every way to run git in the folders. */
export function commandsIn(folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    [...commands, ...changes].flatMap((command) => [`cd ${folder} && git ${command}`, `git -C ${folder} ${command}`]),
  )
}

const limitMs = 20_000

export interface Gated {
  approved: string[]
  /** What the repository got done by commands that were approved. */
  problems: string[]
}

/** Runs the commands that pass the gate without a question, as the bash tool does, and watches what becomes of them. */
export async function runGated(place: GatedPlace, tried: readonly string[]): Promise<Gated> {
  const { root, home, traceFile } = place
  const policy = { mode: 'ask' as const, cwd: root, home, rules: { ...noRules, user: rules } }
  const isChange = (command: string): boolean => changes.some((change) => command.endsWith(` ${change}`))
  const inOrder = [...tried.filter((command) => !isChange(command)), ...tried.filter(isChange)]
  const approved = inOrder.filter((command) => judgeCommand(command, { cwd: root, policy }).effect === 'allow')
  if (approved.length === 0) return { approved, problems: [] }
  const failure = await runAll(place, approved, commandEnvironment({ ...process.env, HOME: home }))
  if (failure !== undefined) return { approved, problems: [failure] }
  const calls = (await readFile(traceFile, 'utf8')).split('\n')
  const own = dirname(root)
  const isExpected = (call: string): boolean =>
    /execve\("[^"]*\/(?:bash|git)", /.test(call) && !call.includes(`execve("${own}/`)
  const foreign = calls.filter((call) => call.includes('execve(') && !isExpected(call))
  const connected = calls.filter((call) => /connect\(.*AF_INET/.test(call))
  return {
    approved,
    problems: [...foreign, ...connected, ...((await isThere(place.canary)) ? ['it got its way'] : [])],
  }
}

/** Whether the repository gets its way if nobody judges, in a plain shell: a trap that never snaps proves nothing. */
export async function strikes(place: GatedPlace, folder: string): Promise<boolean> {
  const looked = ['git status', 'git diff', 'git log -p -1'].map((command) => `cd ${folder} && ${command}`)
  await runAll(place, looked, { PATH: process.env['PATH'], HOME: place.home })
  return isThere(place.canary)
}

async function runAll(
  { root, traceFile }: GatedPlace,
  all: readonly string[],
  env: Record<string, string | undefined>,
): Promise<string | undefined> {
  const script = all.map((command) => `( ${command} ) >/dev/null 2>&1 </dev/null`).join('\n')
  // With -I 2, strace heeds SIGTERM and passes it on.
  const trace = ['-f', '-qq', '-I', '2', '-s', '512', '--seccomp-bpf', '-e', 'trace=execve,connect', '-o', traceFile]
  return promisify(execFile)('strace', [...trace, 'bash', '-c', `cd '${root}' || exit\n${script}\ntrue`], {
    cwd: root,
    env: { ...env, GIT_CONFIG_NOSYSTEM: '1' },
    timeout: limitMs,
    killSignal: 'SIGTERM',
  }).then(
    () => undefined,
    ({ killed, message }: ExecFileException) => (killed ? `it takes more than ${limitMs / 1000} s` : message),
  )
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
