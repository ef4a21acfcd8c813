import { DefaultChatTransport, generateId, readUIMessageStream, type UIMessage } from 'ai'
import { setTimeout as sleep } from 'node:timers/promises'

const [api, question] = process.argv.slice(2)
const transport = new DefaultChatTransport<UIMessage>({ api })
let stream = question === undefined ? null : await send(question)
// Nothing tells a second screen that an answer has begun.
while (stream === null) {
  stream = await transport.reconnectToStream({ chatId: 'chat' })
  if (stream === null) await sleep(100)
}
for await (const { parts } of readUIMessageStream({ stream }))
  console.log(JSON.stringify(parts.map((part) => (part.type === 'text' ? part.text : '')).join('')))

function send(content: string) {
  const message: UIMessage = { id: generateId(), role: 'user', parts: [{ type: 'text', text: content }] }
  return transport.sendMessages({
    chatId: 'chat',
    messages: [message],
    trigger: 'submit-message',
    messageId: undefined,
    abortSignal: undefined,
  })
}
