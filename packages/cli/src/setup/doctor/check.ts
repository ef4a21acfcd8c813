/** The result of one check. */
export interface Check {
  /** The subject, such as `ripgrep`. */
  name: string
  status: 'ok' | 'warning' | 'failed'
  /** A sentence. */
  says: string
  /** What to do: a sentence, or a command. */
  fix?: string
  /** Fixes the problem and returns what was done. Only for fixes that lose nothing. */
  mend?: () => Promise<string>
}

export function ok(name: string, says: string): Check {
  return { name, status: 'ok', says }
}

export function warning(name: string, says: string, fix?: string): Check {
  return { name, status: 'warning', says, ...(fix !== undefined && { fix }) }
}

export function failed(name: string, says: string, fix?: string): Check {
  return { name, status: 'failed', says, ...(fix !== undefined && { fix }) }
}

/** A check that throws has failed, with the error as the reason. */
export async function attempt(name: string, look: () => Promise<Check[]>): Promise<Check[]> {
  try {
    return await look()
  } catch (error) {
    return [failed(name, `The check failed: ${error instanceof Error ? error.message : String(error)}`)]
  }
}
