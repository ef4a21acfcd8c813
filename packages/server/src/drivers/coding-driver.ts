import { openCodingAgent, RegistryError, type CodingAgent, type CodingAgentOptions } from '@tapetree/agent'
import { SessionError, type SessionStore } from '@tapetree/session'
import { stat } from 'node:fs/promises'
import { AgentDriver } from './agent-driver.ts'
import { serverOwner, type SessionDriver, type SlashCommand } from '../live/driver.ts'
import type { NewSession } from '../live/live-sessions.ts'
import { RequestProblem } from '../util/problem-error.ts'

export interface CodingDriverOptions extends Omit<CodingAgentOptions, 'sessionId' | 'cwd' | 'askTrust'> {
  /** Where a session works that has no folder of its own, as an imported one. Absent: it cannot be opened. */
  defaultCwd?: string
  /** Rejects where a session must not work in a folder. */
  checkFolder?: (cwd: string) => Promise<unknown>
}

/**
 * Opens our coding agent for a session, in the folder that the session was made for. Nobody sits before a server: a repository is
 * trusted only where that was granted before.
 */
export async function openCodingDriver(sessionId: string, options: CodingDriverOptions): Promise<SessionDriver> {
  const { defaultCwd, checkFolder, ...agentOptions } = options
  // Held while the agent is put together, which shares it: nobody else can take the session meanwhile.
  await using session = await options.store.open(sessionId)
  const cwd = session.header?.cwd ?? defaultCwd
  if (cwd === undefined) throw new RequestProblem(409, 'no-folder', `Session ${sessionId} has no folder to work in.`)
  await checkFolder?.(cwd)
  // After the folder: what is outside of the allowed folders is not watched either.
  if (session.readOnlyReason !== undefined) throw new SessionError('session-owned', session.readOnlyReason)
  const found = await stat(cwd).catch(() => undefined)
  if (!found?.isDirectory()) {
    throw new RequestProblem(409, 'folder-not-found', `The folder ${JSON.stringify(cwd)} of this session is not there.`)
  }
  const coding = await openCodingAgent({ owner: serverOwner, ...agentOptions, sessionId, cwd }).catch(notUsable)
  return new AgentDriver({
    agent: coding.session,
    slashCommands: () => slashCommandsOf(coding),
    close: () => coding.close(),
  })
}

/** Makes the session that `openCodingDriver` opens later. */
export async function createCodingSession(store: SessionStore, options: NewSession): Promise<string> {
  const { model, agent: _agent, ...header } = options
  await using session = await store.create(header)
  if (model) await session.appendModelChange(model.provider, model.modelId)
  return session.id
}

/** In the order in which a name is looked up. */
function slashCommandsOf({ extensions, resources }: Pick<CodingAgent, 'extensions' | 'resources'>): SlashCommand[] {
  const all = [
    ...extensions.commands.map(({ name, description }) => ({ name, description })),
    ...resources.templates.map(({ name, description, argumentHint }) => ({
      name,
      description: argumentHint === undefined ? description : `${argumentHint}: ${description}`,
    })),
    ...resources.skills.map(({ name, description }) => ({ name: `skill:${name}`, description })),
  ]
  return [...new Map(all.toReversed().map((command) => [command.name, command])).values()].toReversed()
}

/** A key that is missing is said in a sentence that names it. */
function notUsable(error: unknown): never {
  throw error instanceof RegistryError ? new RequestProblem(409, 'model-not-usable', error.message) : error
}
