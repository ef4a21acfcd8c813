/** What one look at the machine found. */
export interface Check {
  /** What was looked at, such as `ripgrep`. */
  name: string
  status: 'ok' | 'warning' | 'failed'
  /** A sentence. */
  says: string
  /** What to do about it: a sentence, or a command. */
  fix?: string
  /** Does it; the result says what was done. Only what loses nothing. */
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

/** A check that breaks off has failed, and says why. */
export async function attempt(name: string, look: () => Promise<Check[]>): Promise<Check[]> {
  try {
    return await look()
  } catch (error) {
    return [failed(name, `It could not be checked: ${error instanceof Error ? error.message : String(error)}`)]
  }
}
