import type { SessionInfo, SessionStore } from '@tapetree/session'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure, usageFailure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { SessionHost } from '../host/session-host.ts'
import type { Io } from '../command-line/io.ts'
import type { OpenedSession } from '../session-source.ts'
import type { RunOptions } from './run-options.ts'

export interface OpenRunOptions {
  io: Io
  store: SessionStore
  options: RunOptions
  /** Absent: a new session is made. */
  meant: SessionInfo | undefined
  /** The one that was asked for. */
  model: { provider: string; modelId: string } | undefined
  /** A sentence on what went wrong beside the conversation. */
  onProblem: (sentence: string) => void
}

export interface OpenRun {
  host: SessionHost
  opened: OpenedSession
}

/** By which other screens, and other runs, know that nobody sits here. */
export const runClientName = 'run'

/** Opens the session of a run: here, or at the process that owns it. */
export async function openRun(wanted: OpenRunOptions): Promise<OpenRun> {
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

async function openHost({ io, store, options, onProblem }: OpenRunOptions): Promise<SessionHost> {
  const { flags, systemPrompt, toolNames } = options
  return SessionHost.open({
    io,
    store,
    owner: 'terminal',
    flags,
    agent: { ...(systemPrompt !== undefined && { systemPrompt }), ...(toolNames && { toolNames }) },
    clientName: runClientName,
    onProblem: ({ source, message }) => onProblem(`${source}: ${message}`),
  })
}

/** What only the process that owns a session can keep to is not silently left out. */
function checkAccess({ access, handle }: OpenedSession, { ownerOptions }: RunOptions): void {
  const { sessionId } = handle
  if (access.type === 'read-only') {
    throw new Failure(exitCodes.ownedElsewhere, `Session ${sessionId} cannot be prompted.`, {
      type: 'session-owned',
      why: harmlessLine(access.reason),
      next: [`tapetree sessions show ${sessionId}`, `tapetree sessions fork ${sessionId}`],
    })
  }
  if (access.type === 'attached' && ownerOptions.length > 0) {
    const names = ownerOptions.join(' and ')
    throw usageFailure(`${names} cannot be kept to, because session ${sessionId} is open in ${access.where}.`, [
      `tapetree run --session ${sessionId} "…"`,
      `tapetree sessions fork ${sessionId}`,
    ])
  }
}

/** A session goes on with the model and the level it had, unless others are asked for. */
async function choose({ handle }: OpenedSession, { options, model }: OpenRunOptions): Promise<void> {
  const { thinkingLevel } = options
  if (model || thinkingLevel !== undefined) {
    await handle.set({ ...(model && { model }), ...(thinkingLevel !== undefined && { thinkingLevel }) })
  }
}
