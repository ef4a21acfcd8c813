import type { RunningServer, TokenStore } from '@tapetree/server'
import type { ServeEditor } from '@tapetree/server/types'
import type { EventEmitter } from 'node:events'
import { request, type ClientRequest } from 'node:http'
import { WebSocket } from 'ws'
import type { KnownToken } from './model.ts'

/** A server of a history, whose connections the proof opens. */
export interface Place {
  server: RunningServer
  tokens: TokenStore
  /** The ids of its sessions, by folder. */
  sessions: Map<string, string>
  /** Changes when it is started again. */
  generation: number
}

export interface Opened {
  closed: Promise<unknown>
  end: () => void
}

let sockets = 0

/** Attaches to the session of a folder. Undefined if the server refuses. */
async function openSocket(
  { server, sessions }: Place,
  { token, id }: KnownToken,
  folder: string,
): Promise<Opened | undefined> {
  const url = `${server.url.replace('http', 'ws')}/api/sessions/${sessions.get(folder)}/ws`
  const socket = new WebSocket(url, ['tapetree.v1', `bearer.${token}`])
  socket.on('error', () => undefined)
  const closed = closeOf(socket)
  socket.on('open', () =>
    socket.send(JSON.stringify({ type: 'attach', data: { client: { id: `c-${id}-${++sockets}` } } })),
  )
  const message = new Promise<string>((resolve) => socket.once('message', (data: Buffer) => resolve(data.toString())))
  const first = await Promise.race([message, closed.then(() => undefined)])
  if (first === undefined) return undefined
  const { type } = JSON.parse(first) as { type: string }
  if (type === 'attached') return { closed, end: () => socket.terminate() }
  socket.terminate()
  return undefined
}

/** Unlike `once`, it does not reject if an error comes first. */
export function closeOf(emitter: EventEmitter): Promise<void> {
  return new Promise((resolve) => emitter.once('close', () => resolve()))
}

/** Follows the list of sessions. Undefined if the server refuses. */
function openStream({ server }: Place, { token }: KnownToken): Promise<Opened | undefined> {
  const asked: ClientRequest = request(`${server.url}/api/events`, {
    agent: false,
    headers: { authorization: `Bearer ${token}` },
  })
  return new Promise((resolve, reject) => {
    asked.on('error', reject)
    asked.on('response', (response) => {
      response.on('error', () => undefined)
      response.resume()
      if (response.statusCode !== 200) return resolve(undefined)
      resolve({ closed: closeOf(response), end: () => response.destroy() })
    })
    asked.end()
  })
}

/** Connects as an editor does. Undefined if the server refuses. */
async function openEditor({ server }: Place, { token }: KnownToken): Promise<Opened | undefined> {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/acp`, ['acp.v1', `bearer.${token}`])
  socket.on('error', () => undefined)
  const closed = closeOf(socket)
  socket.on('open', () => socket.send('{"jsonrpc":"2.0","id":1,"method":"echo"}'))
  const message = new Promise<true>((resolve) => socket.once('message', () => resolve(true)))
  const isOpen = await Promise.race([message, closed.then(() => false)])
  return isOpen ? { closed, end: () => socket.terminate() } : undefined
}

export const openers = { socket: openSocket, stream: openStream, editor: openEditor }

/** Answers every message of an editor. */
export const echo: ServeEditor = async ({ stream }) => {
  const writer = stream.writable.getWriter()
  for await (const message of stream.readable) {
    const { id } = message as { id?: unknown }
    await writer.write({ jsonrpc: '2.0', id, result: {} }).catch(() => undefined)
  }
}

/** How long a connection that must end may take: long enough for a busy machine. */
const patienceMs = 5000

export async function isSettled(closed: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => late.resolve(false), patienceMs)
  try {
    return await Promise.race([closed.then(() => true), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
