import type { Place, SandboxPolicy } from './sandbox-policy.ts'

export interface BwrapOptions {
  /** The folder in which the program starts. */
  cwd: string
  network?: BoxNetwork
}

/**
 * `own`: a loopback interface for the program alone. `entered`: that of the process that starts bubblewrap, which has entered a namespace. `machine`: the
 * same, outside of any namespace; `nameServers` is the file that lists them, if the box would hide it.
 */
export type BoxNetwork = { type: 'own' | 'entered' } | { type: 'machine'; nameServers?: string }

/**
 * The command line that runs a program in the sandbox. There are two boxes, one in the other: the outer one makes everything read-only
 * but the working folder, and the inner one protects files in the working folder. A command that still runs may replace a folder on the
 * way to such a file by a link; the inner box follows it, but only to places that the outer one has made read-only.
 */
export function bwrapArguments(
  bwrap: string,
  policy: SandboxPolicy,
  { cwd, network = { type: 'own' } }: BwrapOptions,
): string[] {
  const argv = [bwrap, ...outerBox(policy, network), '--', bwrap, ...innerBox(policy, cwd), '--']
  const hasSockets = [...policy.hidden, ...policy.hiddenInside].some(({ isSocket }) => isSocket)
  return hasSockets ? ['/bin/sh', '-c', skipGoneSockets, 'sh', ...argv] : argv
}

/** Marks a socket in the command line. No command begins with it, and it would change nothing but the command itself. */
const socketMark = 'tapetree-socket:'

/**
 * Runs its arguments with a mount over each socket that is still there. A socket may go between the survey and the start, and bubblewrap refuses to
 * start if there is nothing to mount over.
 */
const skipGoneSockets = `for each; do
  shift
  case $each in
    ${socketMark}*) each="\${each#${socketMark}}"; [ -S "$each" ] && set -- "$@" --ro-bind /dev/null "$each" ;;
    *) set -- "$@" "$each" ;;
  esac
done
exec "$@"`

function outerBox(policy: SandboxPolicy, network: BoxNetwork): string[] {
  const { scratch, hidden, caches, writable, shown = [], overlay = [] } = policy
  const nameServers = network.type === 'machine' ? network.nameServers : undefined
  return [
    ...['user', 'pid', 'ipc', 'uts'].map((name) => `--unshare-${name}`),
    ...(network.type === 'own' ? ['--unshare-net'] : []),
    '--unshare-cgroup-try',
    '--new-session',
    '--die-with-parent',
    ...['--ro-bind', '/', '/'],
    ...['--dev', '/dev', '--proc', '/proc'],
    ...['--tmpfs', '/run'],
    ...(nameServers === undefined ? [] : ['--ro-bind', nameServers, nameServers]),
    ...overlay,
    ...hidden.flatMap(hide),
    ...['--bind', scratch, '/tmp', '--bind-try', scratch, '/var/tmp'],
    ...caches.flatMap(({ path, instead }) => ['--bind', instead, path]),
    ...writable.flatMap((path) => ['--bind', path, path]),
    ...shown.flatMap((path) => ['--ro-bind', path, path]),
    // Last, because a working folder may be in a hidden one, such as the home folder of another user.
    ...hidden.flatMap(closeFolder),
  ]
}

function innerBox({ pinned, readOnly, hiddenInside }: SandboxPolicy, cwd: string): string[] {
  return [
    // The only way to be rid of the rights over the outer box.
    ...['--unshare-user', '--disable-userns', '--cap-drop', 'ALL', '--die-with-parent'],
    ...['--dev-bind', '/', '/'],
    // The kernel would let root write these in any namespace. The outer box needs them to switch off namespaces in the inner one.
    ...readOnlyProc.flatMap((path) => ['--ro-bind-try', path, path]),
    // A folder comes before what is in it: one may be read-only except for a folder below.
    ...[
      ...pinned.map((path) => ({ path, how: '--bind-try' })),
      ...readOnly.map((path) => ({ path, how: '--ro-bind-try' })),
    ]
      .toSorted((a, b) => (a.path < b.path ? -1 : 1))
      .flatMap(({ path, how }) => [how, path, path]),
    ...hiddenInside.flatMap(hide),
    ...hiddenInside.flatMap(closeFolder),
    ...['--chdir', cwd],
  ]
}

const readOnlyProc = [
  '/proc/sys',
  '/proc/sysrq-trigger',
  '/proc/irq',
  '/proc/bus',
  '/proc/fs',
  '/proc/mtrr',
  '/proc/scsi',
  '/proc/acpi',
]

/** An empty folder, or a file that cannot be opened, in its place. */
function hide({ path, isFolder, isSocket }: Place): string[] {
  if (isSocket) return [`${socketMark}${path}`]
  return isFolder ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path]
}

/** Makes the empty folder read-only, so that a program learns that what it writes there is lost. */
function closeFolder({ path, isFolder }: Place): string[] {
  return isFolder ? ['--remount-ro', path] : []
}
