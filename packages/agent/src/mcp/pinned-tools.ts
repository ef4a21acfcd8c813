import { isDeepStrictEqual } from 'node:util'
import { hashOf } from '../util/request-hash.ts'

/** What identifies a server that the user knows. */
export interface Pin {
  /** The program, or the address. */
  origin: string
  /** Tools by the server's names, each with its hash; absent before the first listing. */
  tools?: Record<string, string>
}

/** Stores pins by server name. Rejects if there may be pins that it cannot read. */
export interface PinStore {
  get(server: string): Promise<Pin | undefined>
  set(server: string, pin: Pin): Promise<void>
}

/** Differences from the pin. */
export interface PinChange {
  /** The program, its arguments or variables, or the address changed: nothing was started yet. */
  isOriginChanged: boolean
  added: string[]
  removed: string[]
  changed: string[]
  /** The new pin, if the user accepts. */
  pin: Pin
  /** Hash of the new pin: accepting requires it, as proof of what was shown. */
  sha256: string
}

/** Whether a server may be started. */
export function compareOrigin(pin: Pin | undefined, origin: string): PinChange | undefined {
  if (pin?.origin === origin) return undefined
  return changeOf({ isOriginChanged: true, added: [], removed: [], changed: [] }, { ...pin, origin })
}

/** Compares the tools with the pin. The first listing becomes the pin. */
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

/** The differences, as sentences for the user. */
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
