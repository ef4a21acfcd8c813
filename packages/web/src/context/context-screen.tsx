import type { RestResults } from '@tapetree/client/types'
import { useCallback, useId, useState, type ReactNode } from 'react'
import { entryLink, screenLink, sessionLink } from '../route.ts'
import { LoadState, Screen } from '../screen.tsx'
import { rest } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'
import './context.css'

type Context = RestResults['context']
type Request = RestResults['entryRequest']
type Message = Context['messages'][number]

interface Step {
  id: string
  preview: string
}

/** The newest answers of the session; each had a request. */
async function loadSteps(sessionId: string, signal: AbortSignal): Promise<Step[]> {
  const { nodes } = await rest.tree(sessionId, { limit: 1000 }, signal)
  return nodes.filter(({ role }) => role === 'assistant')
}

/** The request behind an answer; at any other entry, and without one, the context there. */
async function loadContext(
  sessionId: string,
  entryId: string | undefined,
  signal: AbortSignal,
): Promise<{ context: Context; request?: Request }> {
  if (entryId === undefined) return { context: await rest.context(sessionId, undefined, signal) }
  const entry = await rest.entry(sessionId, entryId, signal)
  if ('request' in entry) {
    const request = await rest.entryRequest(sessionId, entryId, signal)
    return { context: request.context, request }
  }
  return { context: await rest.context(sessionId, entryId, signal) }
}

interface ContextScreenProps {
  sessionId: string
  entryId: string | undefined
  title: string
}

/** What the model saw, and where each part comes from. */
export function ContextScreen({ sessionId, entryId, title }: ContextScreenProps): ReactNode {
  const load = useCallback((signal: AbortSignal) => loadContext(sessionId, entryId, signal), [sessionId, entryId])
  const { value, problem, reload } = useLoaded(load)
  const steps = useLoaded(useCallback((signal: AbortSignal) => loadSteps(sessionId, signal), [sessionId])).value ?? []
  const place = steps.findIndex(({ id }) => id === entryId)
  const stepLink = (step: Step | undefined): string | undefined => step && screenLink(sessionId, 'context', step.id)
  return (
    <Screen title={`What the model saw: ${title}`} back={{ href: sessionLink(sessionId), name: 'Back to the session' }}>
      <div className="context">
        <div className="with-button">
          <label className="field">
            Step
            <select
              value={place < 0 ? '' : entryId}
              onChange={({ target }) =>
                (location.hash = screenLink(sessionId, 'context', target.value === '' ? undefined : target.value))
              }
            >
              <option value="">{entryId === undefined || place >= 0 ? 'Next request' : 'At the chosen entry'}</option>
              {steps.map(({ id, preview }, index) => (
                <option key={id} value={id}>
                  {index + 1}. {preview.slice(0, 80) || 'tool calls'}
                </option>
              ))}
            </select>
          </label>
          <StepLink href={stepLink(place < 0 ? steps.at(-1) : steps[place - 1])} name="Earlier" />
          <StepLink href={stepLink(place < 0 ? undefined : steps[place + 1])} name="Later" />
        </div>
        {value ? <Parts {...value} sessionId={sessionId} /> : <LoadState problem={problem} onRetry={reload} />}
        {value && problem !== undefined && <p className="notice failed">{problem}</p>}
      </div>
    </Screen>
  )
}

function StepLink({ href, name }: { href: string | undefined; name: string }): ReactNode {
  return href === undefined ? null : (
    <a className="button quiet" href={href}>
      {name}
    </a>
  )
}

function Parts({ context, request, sessionId }: { context: Context; request?: Request; sessionId: string }): ReactNode {
  const { system, model, thinkingLevel, messages, repairs } = context
  return (
    <>
      {request && (
        <p className={request.verified ? 'notice good' : 'notice'} role="status">
          {request.verified ? 'Verified: ' : 'Not verified: '}
          {request.reason}
        </p>
      )}
      <dl className="facts">
        <dt>Model</dt>
        <dd>
          {model ? `${model.provider}/${model.modelId}` : 'none chosen'}{' '}
          <Origin sessionId={sessionId} entryId={model?.entryId} />
        </dd>
        <dt>Thinking</dt>
        <dd>
          {thinkingLevel?.level ?? 'as the model decides'}{' '}
          <Origin sessionId={sessionId} entryId={thinkingLevel?.entryId} />
        </dd>
        {request && (
          <>
            <dt>Hash</dt>
            <dd>
              <code>{request.recorded.sha256.slice(0, 16)}…</code> by {request.recorded.adapter}{' '}
              {request.recorded.adapterVersion}
            </dd>
          </>
        )}
      </dl>
      {repairs.map((repair) => (
        <p key={repair} className="notice">
          {repair}
        </p>
      ))}
      <ol className="parts">
        {system && (
          <Part
            name="System prompt"
            size={system.prompt.length}
            origin={<Origin sessionId={sessionId} entryId={system.entryId} />}
          >
            <pre>{system.prompt}</pre>
          </Part>
        )}
        {system && system.tools.length > 0 && (
          <Part
            name={`${system.tools.length} tools: ${system.tools.map(toolName).join(', ')}`}
            size={JSON.stringify(system.tools).length}
            origin={<Origin sessionId={sessionId} entryId={system.entryId} />}
          >
            <pre>{JSON.stringify(system.tools, null, 2)}</pre>
          </Part>
        )}
        {messages.flatMap((message, index) =>
          blocksOf(message).map((block, place) => (
            <Part
              key={`${index}.${place}`}
              name={`${message.message.role}: ${block.type.replaceAll('_', ' ')}`}
              size={block.text.length}
              note={message.reason === 'path' ? undefined : message.because}
              origin={<Origin sessionId={sessionId} entryId={message.entryId} />}
              preview={block.text}
            >
              <pre>{block.text}</pre>
            </Part>
          )),
        )}
      </ol>
      {messages.length === 0 && <p className="faint">The conversation is empty here.</p>}
    </>
  )
}

interface PartProps {
  name: string
  size: number
  origin: ReactNode
  note?: string | undefined
  preview?: string
  children: ReactNode
}

function Part({ name, size, origin, note, preview, children }: PartProps): ReactNode {
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  return (
    <li>
      <button className="fold" aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
        <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span>
        <b>{name}</b>
        <span className="preview">{preview}</span>
      </button>
      <small>
        {size.toLocaleString('en')} characters · {origin}
        {note !== undefined && ` · ${note}`}
      </small>
      <div id={id} hidden={!isOpen} tabIndex={0} role="region" aria-label={name} className="part-body">
        {isOpen && children}
      </div>
    </li>
  )
}

function Origin({ sessionId, entryId }: { sessionId: string; entryId: string | null | undefined }): ReactNode {
  if (entryId === undefined) return null
  if (entryId === null) return <small>not from an entry</small>
  return <a href={entryLink(sessionId, entryId)}>origin: entry {entryId.slice(-6)}</a>
}

/** The blocks of a message, with the names of the log. */
function blocksOf({ message }: Message): { type: string; text: string }[] {
  const { content } = message as { content?: unknown }
  if (!Array.isArray(content)) return [{ type: 'text', text: typeof content === 'string' ? content : '' }]
  return content.map((block: Record<string, unknown>) => {
    const type = String(block['type'])
    const value = block[type]
    const text = (value as { content?: unknown; text?: unknown } | undefined) ?? {}
    const shown = type === 'text' ? text.content : type === 'reasoning' ? text.text : undefined
    return { type, text: typeof shown === 'string' ? shown : JSON.stringify(value, null, 2) }
  })
}

function toolName(tool: unknown): string {
  const { name } = (tool ?? {}) as { name?: unknown }
  return typeof name === 'string' ? name : '?'
}
