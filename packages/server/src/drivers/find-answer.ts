import { fromDisk, type DiskLine, type Session } from '@tapetree/session'

/** Who answered a question first, as a client is told. */
export interface FirstAnswer extends Record<string, unknown> {
  outcome: string
  option_id: string | null
  client: string | null
  seq: number
}

/** The answer that counts, from the log: a restart does not forget who was first. Undefined where there is none. */
export async function findAnswer(session: Session, requestId: string): Promise<FirstAnswer | undefined> {
  for await (const stored of session.lines()) {
    // Most lines are not worth parsing.
    if (stored.type !== 'line' || !stored.text.includes('permission_result')) continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (line.type !== 'permission_result' || line.permissionResult.requestId !== requestId) continue
    const { outcome, optionId, clientId } = line.permissionResult
    return { outcome, option_id: optionId ?? null, client: clientId ?? null, seq: stored.seq }
  }
  return undefined
}
