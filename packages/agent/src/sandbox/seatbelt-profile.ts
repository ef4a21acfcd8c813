import { dirname } from 'node:path'
import { isInside } from '../util/is-inside.ts'
import type { SandboxPolicy } from './sandbox-policy.ts'

export interface SeatbeltOptions {
  /** The port of the proxy on loopback. Absent: commands reach nothing. */
  proxyPort?: number
}

/**
 * The policy as a Seatbelt profile for `sandbox-exec` of macOS. Everything that is not allowed is denied, and of several rules that match, the
 * last one counts. Untried on a Mac: run `scripts/check-seatbelt.ts` there.
 */
export function seatbeltProfile(policy: SandboxPolicy, { proxyPort }: SeatbeltOptions = {}): string {
  const { writable, scratch, caches, hidden, hiddenInside, pinned, readOnly } = policy
  // macOS has no mounts: a cache is the folder itself, and temporary files are where TMPDIR points.
  const folders = [...writable, scratch, ...caches.map(({ path }) => path)]
  return [
    '(version 1)',
    '(deny default)',
    ...basics,
    '(allow file-read*)',
    ...rule('allow file-write*', folders.map(below)),
    // Neither these nor the folders on the way to them can be moved, so that nothing else takes their place.
    ...rule('deny file-write-unlink', waysTo([...pinned, ...readOnly], writable).map(exactly)),
    ...rule('deny file-write*', readOnly.map(below)),
    ...reopened(policy),
    ...rule(
      'deny file-read* file-write*',
      [...hidden, ...hiddenInside].map(({ path }) => below(path)),
    ),
    ...(proxyPort === undefined
      ? []
      : rule('allow network-outbound', [`(remote ip "localhost:${checkedPort(proxyPort)}")`])),
    ...rule('allow network-bind network-inbound', ['(local ip "localhost:*")']),
    '',
  ].join('\n')
}

/** Pinned folders in read-only ones can be written, apart from what is read-only in them. A folder comes before what is in it. */
function reopened({ pinned, readOnly }: SandboxPolicy): string[] {
  const open = pinned.filter((path) => readOnly.some((closed) => isInside(path, closed)))
  const closed = readOnly.filter((path) => open.some((folder) => isInside(path, folder)))
  const rules = [
    ...open.map((path) => ({ path, action: 'allow file-write*' })),
    ...closed.map((path) => ({ path, action: 'deny file-write*' })),
  ]
  return [
    ...rules.toSorted((a, b) => (a.path < b.path ? -1 : 1)).flatMap(({ path, action }) => rule(action, [below(path)])),
    ...rule('deny file-write-unlink', open.map(exactly)),
  ]
}

/** What programs need to start at all. No service that starts other programs, and no Apple events. */
const basics = [
  '(allow process-exec process-fork)',
  '(allow signal process-info* (target same-sandbox))',
  '(allow sysctl-read)',
  '(allow pseudo-tty)',
  '(allow ipc-posix-sem)',
  '(allow user-preference-read)',
  '(allow file-write* file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))',
  '(allow file-write-data (literal "/dev/stdout") (literal "/dev/stderr") (subpath "/dev/fd"))',
  ...[
    'com.apple.system.opendirectoryd.libinfo',
    'com.apple.system.opendirectoryd.membership',
    'com.apple.system.notification_center',
    'com.apple.system.logger',
    'com.apple.logd',
    'com.apple.trustd.agent',
  ].map((service) => `(allow mach-lookup (global-name "${service}"))`),
]

/** Nothing if there are no filters: a rule without one would match everything. */
function rule(action: string, filters: readonly string[]): string[] {
  return filters.length === 0 ? [] : [`(${action}\n  ${[...new Set(filters)].join('\n  ')})`]
}

function below(path: string): string {
  return `(subpath ${quoted(path)})`
}

function exactly(path: string): string {
  return `(literal ${quoted(path)})`
}

/** The paths, and the folders between them and the writable folder that they are in. */
function waysTo(paths: readonly string[], writable: readonly string[]): string[] {
  const ways = new Set<string>()
  for (const path of paths) {
    for (let each = path; writable.some((folder) => isInside(each, folder)); each = dirname(each)) {
      ways.add(each)
      if (writable.includes(each)) break
    }
  }
  return [...ways].toSorted()
}

function quoted(path: string): string {
  const isOdd = [...path].some((character) => character < ' ' || character === '\u007F')
  if (isOdd || !path.startsWith('/')) throw new Error(`${JSON.stringify(path)} cannot be part of a Seatbelt profile.`)
  return `"${path.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

function checkedPort(port: number): number {
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port
  throw new RangeError(`${port} is not a port.`)
}
