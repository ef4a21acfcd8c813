import type { Session } from '@tapetree/session'

/** A line as it stands in the log. */
export type Stored = Record<string, unknown>

/** The lines of a session byte for byte. */
export async function textsOf(session: Session): Promise<string[]> {
  const texts: string[] = []
  for await (const line of session.lines()) texts.push(line.type === 'line' ? line.text : `lost ${line.count}`)
  return texts
}

/** The lines of a session, parsed. */
export async function storedIn(session: Session): Promise<Stored[]> {
  return (await textsOf(session)).map((text) => JSON.parse(text) as Stored)
}

/** One line of a session, parsed. */
export async function storedLine(session: Session, id: string): Promise<Stored> {
  const line = (await storedIn(session)).find((stored) => stored['id'] === id)
  if (!line) throw new Error(`There is no line ${id}`)
  return line
}
