import { basename, dirname } from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import { readOnlyPrograms } from '../../../packages/agent/src/permissions/shell/read-only-programs.ts'

/** What a command did that a command which only reads does not do: one sentence for each. */
export function violationsIn(trace: string): string[] {
  const [, ...calls] = trace.split('\n')
  return calls.flatMap((line) => {
    const call = /^\d+ +(\w+)\((.*)\) += (-?\d+)/.exec(line)
    if (!call) return []
    const [, name = '', words = '', result = ''] = call
    // How a program learns of the addresses of its own machine.
    if (words.includes('sa_family=AF_NETLINK')) return []
    if (name === 'connect') return isLocalService(words) ? [] : [`connected: ${line}`]
    if (Number(result) < 0) return []
    if (name === 'execve') return mayStart(words) ? [] : [`started: ${line}`]
    if (name.startsWith('open') || name === 'creat') return mayOpen(name, words) ? [] : [`wrote: ${line}`]
    return isTemporary(words) ? [] : [`changed: ${line}`]
  })
}

/** What `strace` is told to look at: whatever starts, connects or changes something. */
export const watchedCalls =
  `execve,connect,bind,open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,
symlink,symlinkat,mknod,mknodat,truncate,ftruncate,chmod,fchmod,fchmodat,chown,lchown,fchown,fchownat,utimensat,utime,utimes,
setxattr,lsetxattr,fsetxattr,removexattr,mount,umount2`.replaceAll('\n', '')

/** The C library asks these for names of users and takes no for an answer. */
function isLocalService(words: string): boolean {
  return /sun_path="\/(?:var\/)?run\/(?:nscd\/socket|systemd\/userdb\/.*)"/.test(words)
}

const places = new Set(['/usr/bin', '/bin', '/usr/local/bin', '/usr/lib/git-core', dirname(rgPath)])

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

/** Asked for their version, and for nothing else. */
const isVersion = /^\["[^"]*"(?:, "(?:-v|-V|--version)")+\]/

function mayStart(words: string): boolean {
  const [, path = '', rest = ''] = /^"((?:[^"\\]|\\.)*)", (.*)$/.exec(words) ?? []
  if (!places.has(dirname(path))) return false
  const name = basename(path)
  if (helpers[name]?.test(rest)) return true
  const rule = readOnlyPrograms.get(name)
  if (!rule) return false
  const isOnlyVersion = rule.maxOperands === 0 && /^[\s]*-{1,2}[vV]/.test(rule.options)
  return !isOnlyVersion || isVersion.test(rest)
}

function mayOpen(name: string, words: string): boolean {
  if (name !== 'creat' && !/O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)/.test(words)) return true
  return /"\/dev\/(?:null|tty)"/.test(words) || isTemporary(words)
}

/** Text behind `<<` that does not fit into a pipe, what `sort` cannot hold in memory and what `tac` cannot read backwards. */
function isTemporary(words: string): boolean {
  return /"\/tmp\/(?:sh-thd|sort|tac)[^"/]*"/.test(words)
}
