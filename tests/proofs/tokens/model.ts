import type { Limits, LimitName, Role } from '@tapetree/client/protocol'

/** What a token is allowed, as far as the proof compares it. */
export interface Rights {
  role: Role
  folder: string | undefined
  expiresAt: number | undefined
  limits: Limits
}

/** A token that some server has answered with. */
export interface KnownToken extends Rights {
  id: string
  token: string
  parent: KnownToken | undefined
  isRevoked: boolean
}

/** What a request asks for. Absent members are inherited. */
export interface Wanted {
  role: Role
  folder?: string
  expiresAt?: number
  limits?: Limits
}

export function isValid(token: KnownToken, now: number): boolean {
  if (token.isRevoked || (token.expiresAt !== undefined && token.expiresAt <= now)) return false
  return token.parent === undefined || isValid(token.parent, now)
}

/** Whether a token is another one, or derives from it. */
export function derivesFrom(token: KnownToken, from: KnownToken): boolean {
  return token === from || (token.parent !== undefined && derivesFrom(token.parent, from))
}

export function depthOf({ parent }: KnownToken): number {
  return parent ? depthOf(parent) + 1 : 1
}

/** Written down once more, apart from the server: what a creator may grant. Undefined: nothing that wide. */
export function granted(creator: Rights, wanted: Wanted): Rights | undefined {
  const rights: Rights = {
    role: wanted.role,
    folder: wanted.folder ?? creator.folder,
    expiresAt: wanted.expiresAt ?? creator.expiresAt,
    limits: { ...creator.limits, ...wanted.limits },
  }
  return isWider(rights, creator) ? undefined : rights
}

const rank: Record<Role, number> = { metrics: 0, host: 0, view: 1, queue: 2, approve: 3, drive: 4 }

export function isWider(rights: Rights, than: Rights): boolean {
  const hasRole =
    rights.role === than.role ||
    than.role === 'drive' ||
    (mayView(than) && mayView(rights) && rank[rights.role] <= rank[than.role])
  const isInFolder = than.folder === undefined || `${rights.folder ?? ''}/`.startsWith(`${than.folder}/`)
  const endsInTime = (rights.expiresAt ?? Infinity) <= (than.expiresAt ?? Infinity)
  const names = Object.keys(than.limits) as LimitName[]
  const isWithin = names.every((name) => (rights.limits[name] ?? Infinity) <= (than.limits[name] ?? 0))
  return !(hasRole && isInFolder && endsInTime && isWithin)
}

export function mayView({ role }: Rights): boolean {
  return role !== 'metrics' && role !== 'host'
}
