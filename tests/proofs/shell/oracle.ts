import { basename, dirname } from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import { isControlFile } from '../../../packages/agent/src/permissions/judge-path.ts'
import { exactPath } from '../../../packages/agent/src/permissions/paths/path-pattern.ts'
import { readOnlyPrograms } from '../../../packages/agent/src/permissions/shell/programs/read-only-programs.ts'
import { markOf, secrets, type Workspace } from './world.ts'

/** One case of the proof: a command line and where it runs. */
export interface Case {
  workspace: Workspace
  command: string
}

/** What a command that was approved in this mode may do: nothing but read, or also write files of its workspace. */
export type ApprovedMode = 'ask' | 'accept-edits'

/** A call of the kernel, as `strace` wrote it down. */
interface SystemCall {
  line: string
  process: string
  name: string
  words: string
  hasFailed: boolean
  /** The process that it started, or the file that it opened, with all links followed. */
  result: string
  path: string
}

/** What `strace` is told to look at: whatever starts, opens, connects or changes something. A question mark allows for older kernels. */
export const watchedCalls =
  `execve,?execveat,?clone,?clone3,?fork,?vfork,connect,bind,sendto,sendmsg,sendmmsg,open,openat,?openat2,creat,unlink,unlinkat,rename,
renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,mknod,mknodat,truncate,ftruncate,chmod,fchmod,fchmodat,?fchmodat2,
chown,lchown,fchown,fchownat,utimensat,utime,utimes,futimesat,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr,mount,
umount2,settimeofday,clock_settime,sethostname,setdomainname,?io_uring_setup`.replaceAll('\n', '')

export interface Evidence extends Case {
  /** The folder with the workspaces. */
  world: string
  mode: ApprovedMode
  trace: string
  /** The beginning of what it printed. */
  output: string
}

/** How many programs a command started, and a sentence for each thing that it must not do unasked. */
export function examine(evidence: Evidence): { started: number; violations: string[] } {
  const calls = callsIn(evidence.trace)
  const oracle = new Oracle(evidence)
  const violations = calls.flatMap((call) => oracle.see(call))
  return { started: calls.filter(startsProgram).length, violations: [...violations, ...oracle.seeOutput()] }
}

/**
 * The calls of a command, without the one that started its shell. A call that others came between is in two pieces, which are put
 * together again; one that never came back is taken for done.
 */
function callsIn(trace: string): SystemCall[] {
  const open = new Map<string, string>()
  const lines = trace.split('\n').flatMap((line) => {
    const [, process = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, begin] = /^(.*?) *<unfinished \.\.\.>$/.exec(rest) ?? []
    if (begin !== undefined) {
      open.set(process, begin)
      return []
    }
    const [, end] = /^<\.\.\. \w+ resumed> ?(.*)$/.exec(rest) ?? []
    if (end === undefined) return [{ process, line: rest }]
    const whole = `${open.get(process) ?? ''}${end}`
    open.delete(process)
    return [{ process, line: whole }]
  })
  const unreturned = [...open].map(([process, begin]) => ({ process, line: `${begin}) = 0` }))
  return [...lines.slice(1), ...unreturned].flatMap(({ process, line }) => {
    const [, name, words = '', result = '', path = ''] = /^(\w+)\((.*)\) += (-?\d+|\?)(?:<(.*)>)?/.exec(line) ?? []
    return name === undefined ? [] : [{ line, process, name, words, result, path, hasFailed: result.startsWith('-') }]
  })
}

function startsProgram({ name, hasFailed }: SystemCall): boolean {
  return name === 'execve' && !hasFailed
}

/** Follows the processes of one command. */
class Oracle {
  readonly #evidence: Evidence
  readonly #command: string
  /** What each process was started with; its shell has no words. */
  readonly #started = new Map<string, string>()
  readonly #readers = new Map<string, string[]>()

  constructor(evidence: Evidence) {
    this.#evidence = evidence
    this.#command = evidence.command.replaceAll(/['"\\]/g, '')
  }

  /** What a call does that the command may not do unasked: a sentence or none. */
  see(call: SystemCall): string[] {
    const { line, process, name, words, hasFailed, result, path } = call
    if (name.startsWith('clone') || name.endsWith('fork')) {
      // A child that was faster has said for itself what it is.
      if (!this.#started.has(result)) this.#started.set(result, this.#started.get(process) ?? '')
      return []
    }
    // How a program learns of the addresses of its own machine.
    if (words.includes('sa_family=AF_NETLINK')) return []
    if (name === 'connect' || name.startsWith('send')) return mayTalk(name, words) ? [] : [`connected: ${line}`]
    if (hasFailed) return []
    if (startsProgram(call)) {
      this.#started.set(process, words)
      return mayStart(words) ? [] : [`started: ${line}`]
    }
    if (name.startsWith('open') || name === 'creat') {
      if (!mayOpen(name, words)) return this.#mayWrite(path) ? [] : [`wrote: ${line}`]
      return words.includes('O_PATH') ? [] : this.#read(process, path, line)
    }
    return isTemporary(words) ? [] : [`changed: ${line}`]
  }

  /** A secret that was printed although nobody was seen to open it, such as one in the history of a repository. */
  seeOutput(): string[] {
    const { output } = this.#evidence
    const isPrinted = (path: string): boolean => output.includes(markOf(path))
    const always = secrets.always.filter((path) => isPrinted(path) && !this.#readers.has(path))
    const named = secrets.named.filter((path) => isPrinted(path) && !this.#readers.has(path))
    const tracked = secrets.tracked.filter(
      (path) => isPrinted(path) && (this.#readers.get(path) ?? []).every((words) => programOf(words) === 'git'),
    )
    return [...always, ...named, ...tracked].map((path) => `printed ${path}`)
  }

  #read(process: string, path: string, line: string): string[] {
    const words = this.#started.get(process) ?? ''
    const program = programOf(words)
    // What they print is looked at.
    if (digests.has(program)) return []
    if (systemSecrets.test(path) && program !== 'ps') return [`read: ${line}`]
    const { world } = this.#evidence
    if (!path.startsWith(`${world}/`)) return []
    const below = path.slice(world.length + 1)
    const isNamed = secrets.named.includes(below) || secrets.tracked.includes(below)
    if (!isNamed && !secrets.always.includes(below)) return []
    this.#readers.set(below, [...(this.#readers.get(below) ?? []), words])
    if (!isNamed) return [`read: ${line}`]
    // Git looks whether a tracked file has changed, and a search through an ordinary folder may find one.
    const isSpelled = this.#command.includes('.env') && (words === '' || words.includes('.env'))
    return isSpelled && program !== 'git' ? [`read: ${line}`] : []
  }

  #mayWrite(path: string): boolean {
    const { mode, world, workspace } = this.#evidence
    return mode === 'accept-edits' && path.startsWith(`${world}/${workspace}/`) && !isControlFile(exactPath(path))
  }
}

/** Secrets of the machine. `ps` opens the environment of every process, though it shows it only if it is asked to. */
const systemSecrets = /^\/(?:etc\/(?:g?shadow|sudoers)|proc\/\d+\/(?:environ|mem)$)/

/** Programs that open a file and print nothing of what is in it. */
const digests = new Set('df file cksum md5sum sha1sum sha256sum sha512sum shasum unzip zipinfo'.split(' '))

function programOf(words: string): string {
  return basename(/^"((?:[^"\\]|\\.)*)"/.exec(words)?.[1] ?? '')
}

/** What is sent without an address goes where somebody connected to, and that is looked at by itself. */
function mayTalk(name: string, words: string): boolean {
  return isLocalService(words) || (name !== 'connect' && !words.includes('sa_family='))
}

/** The C library asks these for names of users and takes no for an answer. */
function isLocalService(words: string): boolean {
  return /sun_path="\/(?:var\/)?run\/(?:nscd\/socket|systemd\/userdb\/.*)"/.test(words)
}

/** Where the programs of the list lie. */
const places = new Set([
  '/usr/bin',
  '/bin',
  '/usr/local/bin',
  '/usr/lib/git-core',
  '/usr/libexec/git-core',
  dirname(rgPath),
])

/** What the programs on the list are made of: `npm` is a script for `node`, `tar` has others unpack. */
const helpers: Record<string, RegExp> = {
  env: /^\["\/usr\/bin\/env", "node", "\/usr\/bin\/npm"/,
  node: /^\["node", "\/usr\/bin\/npm"/,
  gzip: /^\["gzip", "-d"\]/,
  bzip2: /^\["bzip2", "-d"\]/,
  xz: /^\["xz", "-d"\]/,
  'dpkg-query': /./,
  git: /./,
  find: /./,
  npm: /./,
  xargs: /./,
  timeout: /./,
  echo: /./,
  printf: /./,
  test: /./,
  '[': /./,
  true: /./,
  false: /./,
  pwd: /./,
}

/** Asked for their version, and for nothing else; the end of options may be said, with nothing behind it. */
const isVersion = /^\["[^"]*"(?:, "(?:-v|-V|--version)")+(?:, "--")?\]/

function mayStart(words: string): boolean {
  const [, path = '', rest = ''] = /^"((?:[^"\\]|\\.)*)", (.*)$/.exec(words) ?? []
  if (!places.has(dirname(path))) return false
  const name = basename(path)
  if (helpers[name]?.test(rest)) return true
  const rule = readOnlyPrograms.get(name)
  if (!rule) return false
  if (rule.maxOperands !== 0) return true
  // Those that would start something else if they were given a name, or that are asked for their version alone.
  const isOnlyVersion = /^\s*-{1,2}[vV]/.test(rule.options)
  return (isOnlyVersion ? isVersion : hasOnlyOptions).test(rest)
}

const hasOnlyOptions = /^\["[^"]*"(?:, "-[^"]*")*\]/

function mayOpen(name: string, words: string): boolean {
  if (name !== 'creat' && !/O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)/.test(words)) return true
  return /"\/dev\/(?:null|tty)"/.test(words) || isTemporary(words)
}

/** Text behind `<<` that does not fit into a pipe, what `sort` cannot hold in memory and what `tac` cannot read backwards. */
function isTemporary(words: string): boolean {
  return /"\/tmp\/(?:sh-thd|sort|tac)[^"/]*"/.test(words)
}
