import {
  checkRequest,
  createModelRegistry,
  loadSettings,
  RegistryError,
  type Model,
  type RequestCheck,
} from '@tapetree/agent'
import type { Session } from '@tapetree/session'
import type { Io } from '../command-line/io.ts'
import type { ContextSource } from './context-source.ts'

export interface CheckedRequest {
  outcome: RequestCheck['outcome']
  /** Why it could not be made again. */
  why?: string
}

/** Makes the request of an answer again and compares. Nothing is sent, and no key is looked for. */
export async function checkAgain(
  session: Session,
  answer: NonNullable<ContextSource['answer']>,
  { cwd, home, env }: Io,
): Promise<CheckedRequest> {
  const { values } = await loadSettings({ cwd, home, env })
  const registry = createModelRegistry({
    env: {},
    providers: values.providers,
    credentials: { keyFor: async () => ({ value: 'not used', origin: 'nowhere' }) },
  })
  const { provider = '', model: id = '' } = answer.message
  let model: Model | undefined
  let why: string | undefined
  try {
    model = (await registry.open({ provider, id })).model
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
    why = error.message
  }
  const outcome = (await checkRequest(session, answer.id, { model: () => model })) ?? 'unknown-model'
  return { outcome, ...(why !== undefined && { why }) }
}
