import type { Session } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'

/** The lines of a log, without those that are lost. */
export async function linesOf({ session }: { session: Session }): Promise<Line[]> {
  const lines: Line[] = []
  for await (const line of session.lines()) {
    if (line.type === 'line') lines.push(fromDisk(JSON.parse(line.text) as DiskLine, line.seq))
  }
  return lines
}

/** The results of tools that the model sees, as JSON. */
export async function resultsOf({ session }: { session: Session }): Promise<string[]> {
  const { messages } = await session.getContext()
  return messages.flatMap(({ message }) => (message.role === 'tool' ? [JSON.stringify(message.content)] : []))
}
