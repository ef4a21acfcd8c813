import { openCodingAgent, type CodingAgent, type CodingAgentOptions } from '@tapetree/agent'
import { RegistryError } from '@tapetree/agent/models'
import { foreignApi, type ForeignPlace } from '@tapetree/agent/foreign'
import { RemoteWorkspace, type WorkspaceReference } from '@tapetree/agent/tool-host'
import { SessionError, type Session, type SessionStore } from '@tapetree/session'
import { stat } from 'node:fs/promises'
import { AcpAgent } from '../acp/acp-agent.ts'
import { findAgent, ownAgent } from '../acp/known-agents.ts'
import { AgentDriver } from './agent-driver.ts'
import type { WorkspaceSource } from '../tool-hosts/tool-hosts.ts'
import { localUser, serverOwner, type SessionDriver, type SlashCommand } from '../live/driver.ts'
import type { NewSession } from '../live/live-sessions.ts'
import { isEffectOf } from '../live/sent-command.ts'
import { RequestProblem } from '../util/problem-error.ts'

export interface CodingDriverOptions extends Omit<
  CodingAgentOptions,
  'sessionId' | 'cwd' | 'workingFolder' | 'remote' | 'askTrust' | 'foreign'
> {
  /** Folder for a session without one, such as an imported one. Absent: it cannot be opened. */
  defaultCwd?: string
  /** Rejects if a session must not work in a folder. */
  checkFolder?: (cwd: string) => Promise<unknown>
  /** The tool hosts that sessions may use. Absent: a session that uses one cannot be opened here. */
  workspaces?: WorkspaceSource
}

/**
 * Opens our coding agent for a session, in the session's folder. No person attends a server: a repository is
 * trusted only if that was granted before.
 */
export async function openCodingDriver(sessionId: string, options: CodingDriverOptions): Promise<SessionDriver> {
  const { defaultCwd, checkFolder, workspaces, ...agentOptions } = options
  // Held while the agent is assembled, which shares it, so that no other process can take the session.
  await using session = await options.store.open(sessionId)
  const cwd = session.header?.cwd ?? defaultCwd
  if (cwd === undefined)
    throw new RequestProblem(
      409,
      'no-folder',
      `Session ${sessionId} has no folder. Start the server with a default folder, or use another session.`,
    )
  const workingFolder = session.workingCopy?.outcome === undefined ? session.workingCopy?.folder : undefined
  for (const folder of [cwd, workingFolder ?? cwd]) await checkFolder?.(folder)
  // After the folder check: sessions outside of the allowed folders cannot be watched either.
  if (session.readOnlyReason !== undefined) throw new SessionError('session-owned', session.readOnlyReason)
  for (const folder of [cwd, workingFolder ?? cwd]) await requireFolder(folder)
  const { model } = await session.getModelChoice()
  const agentName = model?.provider === foreignApi ? model.modelId : undefined
  if (session.workspace && agentName !== undefined) throw agentOnServer(agentName)
  const remote = session.workspace && remoteOf(session.workspace, workspaces)
  const place = { cwd, ...(workingFolder !== undefined && { workingFolder }), ...(remote && { remote }) }
  let foreign: AcpAgent | undefined
  const opening = openCodingAgent({
    ...{ owner: serverOwner, ...agentOptions, sessionId, ...place },
    ...(agentName !== undefined && {
      foreign: (there: ForeignPlace) => (foreign = foreignAgent(agentName, there, agentOptions)),
    }),
  })
  const coding = await opening.catch((error: unknown) => {
    remote?.close()
    return notUsable(error)
  })
  return new AgentDriver({
    agent: coding.session,
    slashCommands: () => foreign?.commands ?? slashCommandsOf(coding),
    onChange: (listener) => foreign?.onChange(listener) ?? (() => undefined),
    ...(coding.languageServers && { languageServers: coding.languageServers }),
    ...(agentName === undefined ? workspaces && { workspaces } : { workspaces: noWorkspaces(agentName) }),
    close: async () => {
      await coding.close()
      await foreign?.close()
      remote?.close()
    },
  })
}

function foreignAgent(
  name: string,
  { settings, cwd, box }: ForeignPlace,
  { env = process.env, home }: Pick<CodingDriverOptions, 'env' | 'home'>,
): AcpAgent {
  const found = findAgent(name, settings.agents, { env, home })
  if (found) return new AcpAgent({ name, ...found, cwd, ...(box && { box }) })
  throw new RequestProblem(
    409,
    'unknown-agent',
    `The agent ${JSON.stringify(name)} of this session does not exist. Add it to \`agents\` in your settings.`,
  )
}

/** The agent is a program of the server, and would look for the folder of the tool host there. */
function agentOnServer(name: string): RequestProblem {
  return new RequestProblem(
    409,
    'no-tool-hosts',
    `The agent ${name} runs on the server, so its session cannot use a workspace of a tool host. Use a folder of the server, or the agent of tapetree.`,
  )
}

function noWorkspaces(agentName: string): WorkspaceSource {
  const refuse = (): never => {
    throw agentOnServer(agentName)
  }
  return { list: refuse, channel: refuse }
}

function remoteOf(workspace: WorkspaceReference, workspaces: WorkspaceSource | undefined): RemoteWorkspace {
  if (workspaces) return new RemoteWorkspace(workspace, workspaces.channel(workspace.hostId))
  const { hostName, name } = workspace
  throw new RequestProblem(
    409,
    'no-tool-hosts',
    `The tools of this session work in ${JSON.stringify(name)} on the tool host ${hostName}. Open it through the server to which that host connects.`,
  )
}

async function requireFolder(folder: string): Promise<void> {
  const found = await stat(folder).catch(() => undefined)
  if (found?.isDirectory()) return
  throw new RequestProblem(
    409,
    'folder-not-found',
    `The folder ${JSON.stringify(folder)} of this session does not exist.`,
  )
}

/**
 * Creates a session that `openCodingDriver` opens later. If the same request created it before, completes it before it rejects
 * with `session-exists`: that process may have died after the first line.
 */
export async function createCodingSession(store: SessionStore, options: NewSession): Promise<string> {
  const { model: _model, agent, workspace, ...header } = options
  if (workspace && agent !== undefined && agent !== ownAgent) throw agentOnServer(agent)
  try {
    await using session = await store.create(header)
    await addMissing(session, options)
    return session.id
  } catch (error) {
    if (error instanceof SessionError && error.code === 'session-exists') await completeEarlier(store, options)
    throw error
  }
}

async function completeEarlier(store: SessionStore, options: NewSession): Promise<void> {
  const { id, cause } = options
  if (id === undefined || cause?.digest === undefined) return
  await using session = await store.open(id)
  const isUsed = session.readOnlyReason !== undefined || session.info.messageCount > 0
  const { token = localUser, digest } = cause
  if (!isUsed && (await isEffectOf(session, 1, { token, digest }))) await addMissing(session, options)
}

async function addMissing(session: Session, { model, agent, workspace }: NewSession): Promise<void> {
  if (workspace && !session.workspace) await session.append({ type: 'workspace', workspace })
  if ((await session.getModelChoice()).model) return
  if (agent !== undefined && agent !== ownAgent) await session.appendModelChange(foreignApi, agent)
  else if (model) await session.appendModelChange(model.provider, model.modelId)
}

/** In lookup order. */
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

/** A missing key is reported with its name. */
function notUsable(error: unknown): never {
  throw error instanceof RegistryError ? new RequestProblem(409, 'model-not-usable', error.message) : error
}
