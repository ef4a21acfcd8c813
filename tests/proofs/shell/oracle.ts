import { basename, dirname } from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import { readOnlyPrograms } from '../../../packages/agent/src/permissions/shell/read-only-programs.ts'

/** A call of the kernel, as `strace` wrote it down. */
export interface SystemCall {
  line: string
  name: string
  words: string
  hasFailed: boolean
}

/**
 * The calls of a command, without the one that started its shell. A call that others came between is in two pieces, which are put
 * together again; one that never came back is taken for done.
 */
export function callsIn(trace: string): SystemCall[] {
  const open = new Map<string, string>()
  const lines = trace.split('\n').flatMap((line) => {
    const [, process = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, begin] = /^(.*?) *<unfinished \.\.\.>$/.exec(rest) ?? []
    if (begin !== undefined) {
      open.set(process, begin)
      return []
    }
    const [, end] = /^<\.\.\. \w+ resumed> ?(.*)$/.exec(rest) ?? []
    if (end === undefined) return [rest]
    const whole = `${open.get(process) ?? ''}${end}`
    open.delete(process)
    return [whole]
  })
  const unreturned = [...open.values()].map((begin) => `${begin}) = 0`)
  return [...lines.slice(1), ...unreturned].flatMap((line) => {
    const [, name, words = '', result = ''] = /^(\w+)\((.*)\) += (-?\d+|\?)/.exec(line) ?? []
    return name === undefined ? [] : [{ line, name, words, hasFailed: result.startsWith('-') }]
  })
}

export function startsProgram({ name, hasFailed }: SystemCall): boolean {
  return name === 'execve' && !hasFailed
}

/** What a call does that a command which only reads does not do: a sentence or none. */
export function violationOf(call: SystemCall): string[] {
  const { line, name, words, hasFailed } = call
  // How a program learns of the addresses of its own machine.
  if (words.includes('sa_family=AF_NETLINK')) return []
  if (name === 'connect' || name.startsWith('send')) return mayTalk(name, words) ? [] : [`connected: ${line}`]
  if (hasFailed) return []
  if (startsProgram(call)) return mayStart(words) ? [] : [`started: ${line}`]
  if (name.startsWith('open') || name === 'creat') return mayOpen(name, words) ? [] : [`wrote: ${line}`]
  return isTemporary(words) ? [] : [`changed: ${line}`]
}

/** What `strace` is told to look at: whatever starts, connects or changes something. A question mark allows for older kernels. */
export const watchedCalls =
  `execve,?execveat,connect,bind,sendto,sendmsg,sendmmsg,open,openat,?openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,
mkdirat,rmdir,link,linkat,symlink,symlinkat,mknod,mknodat,truncate,ftruncate,chmod,fchmod,fchmodat,?fchmodat2,chown,lchown,fchown,fchownat,
utimensat,utime,utimes,futimesat,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr,mount,umount2,settimeofday,
clock_settime,sethostname,setdomainname,?io_uring_setup`.replaceAll('\n', '')

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
