import { ProblemError, RestClient } from '@tapetree/client'

/** The server that served this page, below whatever path a proxy put it. */
export const baseUrl = new URL('.', location.href).href

export const rest = new RestClient({ baseUrl })

export type Role = 'view' | 'queue' | 'approve' | 'drive' | 'metrics' | 'host'

/** Each includes the rights of the previous ones. */
const ladder: readonly Role[] = ['view', 'queue', 'approve', 'drive']

export const rights: Record<Role, { name: string; meaning: string }> = {
  view: { name: 'View', meaning: 'Watch sessions, search, read the log.' },
  queue: { name: 'Queue', meaning: 'Also queue messages, rename and label. Starts no run.' },
  approve: { name: 'Approve', meaning: 'Also answer permission requests and questions.' },
  drive: { name: 'Drive', meaning: 'Everything: prompt, run commands, change the model, invite other devices.' },
  metrics: { name: 'Metrics', meaning: 'Read the metrics, and nothing else.' },
  host: { name: 'Host', meaning: 'Connect a tool host, and nothing else.' },
}

export function mayDo(has: Role, needs: Role): boolean {
  return ladder.indexOf(has) >= ladder.indexOf(needs)
}

/** The roles that a link with this role can be used for, the widest first. */
export function rolesWithin(role: Role): Role[] {
  const place = ladder.indexOf(role)
  return place < 0 ? [role] : ladder.slice(0, place + 1).toReversed()
}

export interface Caller {
  tokenId: string
  role: Role
}

/** Null if this browser is not paired. */
export async function readCaller(): Promise<Caller | null> {
  try {
    const { token_id: tokenId, role } = await ask('caller')
    return { tokenId: String(tokenId), role: role as Role }
  } catch (error) {
    if (isUnauthorized(error)) return null
    throw error
  }
}

/** What a pairing code grants. Does not use it up. */
export async function previewPairing(code: string): Promise<Role> {
  return (await ask('pair/preview', { code }))['role'] as Role
}

/** The token is in a cookie that no script can read. */
export async function pair(given: { code: string; role: Role; name: string }): Promise<void> {
  const { id } = await ask('pair', given)
  storage(() => localStorage.setItem(ownToken, String(id)))
}

/** Revokes the token only if this page got it by pairing: others may use one that was signed in with. */
export async function signOut({ tokenId }: Caller): Promise<void> {
  await ask('sign-out', { revoke: storage(() => localStorage.getItem(ownToken)) === tokenId })
}

export function isUnauthorized(error: unknown): boolean {
  return error instanceof ProblemError && error.status === 401
}

/** A sentence for the user. */
export function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const ownToken = 'tapetree-token-id'

/** Storage is not available everywhere, as in some private windows. */
export function storage<T>(use: () => T): T | undefined {
  try {
    return use()
  } catch {
    return undefined
  }
}

async function ask(path: string, body?: unknown): Promise<Record<string, unknown>> {
  const init: RequestInit = body
    ? { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    : {}
  let response: Response
  try {
    response = await fetch(new URL(`api/${path}`, baseUrl), { ...init, redirect: 'error' })
  } catch (cause) {
    throw new Error(
      'The server does not answer. Check that tapetree serve is running and that this device can reach it.',
      { cause },
    )
  }
  const json = (await response.json().catch(() => ({}))) as Record<string, unknown>
  if (response.ok) return json
  const { type = 'http', title = 'Failed', detail } = json
  throw new ProblemError({
    type: String(type),
    title: String(title),
    status: response.status,
    detail: typeof detail === 'string' ? detail : `The server answered ${response.status}.`,
  })
}
