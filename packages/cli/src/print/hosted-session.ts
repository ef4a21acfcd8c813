import type { SessionInfo, SessionStore } from '@tapetree/session'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure, usageFailure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { SessionHost } from '../host/session-host.ts'
import type { Io } from '../command-line/io.ts'
import type { OpenedSession } from '../session-source.ts'
import type { RunOptions } from './run-options.ts'

export interface HostedSessionOptions {
  io: Io
  store: SessionStore
  options: RunOptions
  /** If absent, creates a session. */
  meant: SessionInfo | undefined
  /** The requested model. */
  model: { provider: string; modelId: string } | undefined
  /** Called with problems outside the conversation, a sentence each. */
  onProblem: (sentence: string) => void
}

export interface HostedSession {
  host: SessionHost
  opened: OpenedSession
}

/** Tells other screens and runs that no user is present here. */
export const runClientName = 'run'

/** Opens the session of a run: here, or through the process that owns it. */
export async function openHostedSession(wanted: HostedSessionOptions): Promise<HostedSession> {
  const { io, options, meant, model } = wanted
  const host = await openHost(wanted)
  try {
    io.signal.throwIfAborted()
    const opened = await (meant ? host.open(meant.id) : host.openNew({ cwd: io.cwd, ...(model && { model }) }))
    try {
      checkAccess(opened, options)
      if (meant) await choose(opened, wanted)
      return { host, opened }
    } catch (error) {
      await opened.handle.close()
      throw error
    }
  } catch (error) {
    await host.close()
    throw error
  }
}

async function openHost({ io, store, options, onProblem }: HostedSessionOptions): Promise<SessionHost> {
  const { flags, systemPrompt, toolNames, traceUrl } = options
  return SessionHost.open({
    io,
    store,
    owner: 'terminal',
    flags,
    agent: { ...(systemPrompt !== undefined && { systemPrompt }), ...(toolNames && { toolNames }) },
    clientName: runClientName,
    traceUrl,
    onProblem: ({ source, message }) => onProblem(`${source}: ${message}`),
  })
}

/** Refuses options that only the owner of a session can apply, instead of ignoring them. */
function checkAccess({ access, handle }: OpenedSession, { ownerOptions }: RunOptions): void {
  const { sessionId } = handle
  if (access.type === 'read-only') {
    throw new Failure(exitCodes.ownedElsewhere, `Session ${sessionId} does not accept prompts.`, {
      type: 'session-owned',
      why: harmlessLine(access.reason),
      next: [`tapetree sessions show ${sessionId}`, `tapetree sessions fork ${sessionId}`],
    })
  }
  if (access.type === 'attached' && ownerOptions.length > 0) {
    const names = ownerOptions.join(' and ')
    throw usageFailure(`${names} cannot be applied, because session ${sessionId} is open in ${access.where}.`, [
      `tapetree run --session ${sessionId} "…"`,
      `tapetree sessions fork ${sessionId}`,
    ])
  }
}

/** A session keeps its model and thinking level unless the command line names others. */
async function choose({ handle }: OpenedSession, { options, model }: HostedSessionOptions): Promise<void> {
  const { thinkingLevel } = options
  if (model || thinkingLevel !== undefined) {
    await handle.set({ ...(model && { model }), ...(thinkingLevel !== undefined && { thinkingLevel }) })
  }
}
