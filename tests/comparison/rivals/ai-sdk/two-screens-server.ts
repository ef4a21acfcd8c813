import { anthropic } from '@ai-sdk/anthropic'
import { convertToModelMessages, generateId, pipeUIMessageStreamToResponse, streamText } from 'ai'
import { toUIMessageStream, UI_MESSAGE_STREAM_HEADERS, type UIMessage } from 'ai'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Readable } from 'node:stream'
import type { AddressInfo } from 'node:net'
import { createResumableStreamContext } from 'resumable-stream/generic'
import { publisher, subscriber } from './redis-stand-in.ts'

const streams = createResumableStreamContext({ waitUntil: null, publisher, subscriber })
const chat: { messages: UIMessage[]; activeStreamId: string | null } = { messages: [], activeStreamId: null }
const server = createServer(async (request, response) => {
  if (request.method === 'POST') {
    const { messages } = JSON.parse(await text(request)) as { messages: UIMessage[] }
    Object.assign(chat, { messages, activeStreamId: null })
    const result = streamText({
      model: anthropic('claude-sonnet-5'),
      messages: await convertToModelMessages(messages),
    })
    const stream = toUIMessageStream({
      stream: result.stream,
      originalMessages: messages,
      generateMessageId: generateId,
      onEnd: ({ messages }) => void Object.assign(chat, { messages, activeStreamId: null }),
    })
    const consumeSseStream = async ({ stream }: { stream: ReadableStream<string> }) => {
      const streamId = generateId()
      await streams.createNewResumableStream(streamId, () => stream)
      chat.activeStreamId = streamId
    }
    return pipeUIMessageStreamToResponse({ response, stream, consumeSseStream })
  }
  const resumed = chat.activeStreamId && (await streams.resumeExistingStream(chat.activeStreamId))
  if (!resumed) return response.writeHead(204).end()
  Readable.fromWeb(resumed).pipe(response.writeHead(200, UI_MESSAGE_STREAM_HEADERS))
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/api/chat`))
