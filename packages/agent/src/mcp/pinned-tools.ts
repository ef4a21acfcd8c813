import { isDeepStrictEqual } from 'node:util'
import { hashOf } from '../util/request-hash.ts'

/** What the user knows a server by. */
export interface Pin {
  /** What is run, or whom we speak to. */
  origin: string
  /** The tools by the names that the server gives them, each with its hash; absent where none were seen yet. */
  tools?: Record<string, string>
}

/** Keeps pins by the names of servers. */
export interface PinStore {
  get(server: string): Promise<Pin | undefined>
  set(server: string, pin: Pin): Promise<void>
}

/** What is no longer as the user knows it. */
export interface PinChange {
  /** The program, its arguments or variables, or the address: nothing was started yet. */
  isOriginChanged: boolean
  added: string[]
  removed: string[]
  changed: string[]
  /** What the user would accept. */
  pin: Pin
  /** Of that: whoever accepts says what they saw. */
  sha256: string
}

/** Whether a server may be started. */
export function compareOrigin(pin: Pin | undefined, origin: string): PinChange | undefined {
  if (pin?.origin === origin) return undefined
  return changeOf({ isOriginChanged: true, added: [], removed: [], changed: [] }, { ...pin, origin })
}

/** Whether its tools are the ones that the user knows. The first list of a server is what it is known by from then on. */
export function compareTools(pin: Pin, tools: readonly { name: string; sha256: string }[]): PinChange | undefined {
  if (!pin.tools) return undefined
  const known = new Map(Object.entries(pin.tools))
  const listed = new Map(tools.map(({ name, sha256 }) => [name, sha256]))
  const added = [...listed.keys()].filter((name) => !known.has(name)).sort()
  const removed = [...known.keys()].filter((name) => !listed.has(name)).sort()
  const changed = [...listed].filter(([name, sha256]) => known.has(name) && known.get(name) !== sha256)
  if (added.length + removed.length + changed.length === 0) return undefined
  const names = changed.map(([name]) => name).sort()
  return changeOf({ isOriginChanged: false, added, removed, changed: names }, pinOf(pin.origin, tools))
}

export function pinOf(origin: string, tools: readonly { name: string; sha256: string }[]): Pin {
  return { origin, tools: Object.fromEntries(tools.map(({ name, sha256 }) => [name, sha256])) }
}

/** What is different, as sentences for the user. */
export function describeChange({ isOriginChanged, added, removed, changed }: PinChange): string {
  if (isOriginChanged) {
    return 'It is not the program or the address that you accepted, so it is not started.'
  }
  const parts = [
    ...(changed.length > 0 ? [`changed: ${changed.join(', ')}`] : []),
    ...(added.length > 0 ? [`new: ${added.join(', ')}`] : []),
    ...(removed.length > 0 ? [`gone: ${removed.join(', ')}`] : []),
  ]
  return `Its tools are not the ones that you accepted, so none of them can be used (${parts.join('; ')}).`
}

export function isSamePin(left: Pin | undefined, right: Pin): boolean {
  return left !== undefined && isDeepStrictEqual([left.origin, left.tools ?? {}], [right.origin, right.tools ?? {}])
}

function changeOf(change: Omit<PinChange, 'pin' | 'sha256'>, pin: Pin): PinChange {
  return { ...change, pin, sha256: hashOf(pin) }
}
