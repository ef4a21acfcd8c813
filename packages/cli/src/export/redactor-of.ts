import { createRedactor, loadSettings, secretsOf, type Redactor } from '@tapetree/agent'
import type { Io } from '../command-line/io.ts'

/** The same that a session is recorded with. What a project says does not count. */
export async function redactorOf({ cwd, home, env }: Io): Promise<Redactor> {
  const { values } = await loadSettings({ cwd, home, env })
  return createRedactor({ secrets: secretsOf(env), allow: values.redaction.allow })
}
