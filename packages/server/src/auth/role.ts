/** What a token lets do, each more than the one before it: look, leave messages, answer questions, drive. */
export const roles = ['view', 'queue', 'approve', 'drive'] as const
export type Role = (typeof roles)[number]

export function mayDo(has: Role, needs: Role): boolean {
  return roles.indexOf(has) >= roles.indexOf(needs)
}

/** Who is calling, as the server says: nothing of it comes from the request but the token. */
export interface Caller {
  tokenId: string
  tenant: string
  role: Role
}
