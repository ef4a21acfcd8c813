import type { Place, SandboxPolicy } from './sandbox-policy.ts'

/**
 * The command line that runs a program in the sandbox. There are two boxes, one in the other: the outer one makes everything read-only
 * but the working folder, and the inner one protects files in the working folder. A command that still runs may replace a folder on the
 * way to such a file by a link; the inner box follows it, but only to places that the outer one has made read-only.
 */
export function bwrapArguments(bwrap: string, policy: SandboxPolicy, cwd: string): string[] {
  return [bwrap, ...outerBox(policy), '--', bwrap, ...innerBox(policy, cwd), '--']
}

function outerBox({ scratch, hidden, caches, writable, overlay = [] }: SandboxPolicy): string[] {
  return [
    ...['user', 'pid', 'ipc', 'net', 'uts'].map((name) => `--unshare-${name}`),
    '--unshare-cgroup-try',
    '--new-session',
    '--die-with-parent',
    ...['--ro-bind', '/', '/'],
    ...['--dev', '/dev', '--proc', '/proc'],
    ...['--tmpfs', '/run'],
    ...overlay,
    ...hidden.flatMap(hide),
    ...['--bind', scratch, '/tmp', '--bind-try', scratch, '/var/tmp'],
    ...caches.flatMap(({ path, instead }) => ['--bind', instead, path]),
    ...writable.flatMap((path) => ['--bind', path, path]),
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
    ...pinned.flatMap((path) => ['--bind-try', path, path]),
    ...readOnly.flatMap((path) => ['--ro-bind-try', path, path]),
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
function hide({ path, isFolder }: Place): string[] {
  return isFolder ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path]
}

/** Makes the empty folder read-only, so that a program learns that what it writes there is lost. */
function closeFolder({ path, isFolder }: Place): string[] {
  return isFolder ? ['--remount-ro', path] : []
}
