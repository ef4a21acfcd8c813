import { createRedactor, loadSettings, secretsOf, type Redactor } from '@tapetree/agent/settings'
import type { Io } from '../../command-line/io.ts'

/** The redaction that sessions are recorded with. Project settings do not apply. */
export async function redactorOf({ cwd, home, env }: Pick<Io, 'cwd' | 'home' | 'env'>): Promise<Redactor> {
  const { values } = await loadSettings({ cwd, home, env })
  return createRedactor({ secrets: secretsOf(env), allow: values.redaction.allow })
}
