import { write, type Io } from './io.ts'
import { jsonText } from '../text/json-text.ts'

/** A result as a script reads it: one line. Its members are named in snake_case, as on disk and on the wire. */
export async function printJson({ stdout }: Pick<Io, 'stdout'>, value: unknown): Promise<void> {
  await write(stdout, `${jsonText(value)}\n`)
}
