/** In the place of the network: an OpenAI-compatible server that says `Done.` to everything, and keeps what it was sent. */
export function answeringFetch(requests: string[]): typeof globalThis.fetch {
  return async (input, init) => {
    requests.push(await new Request(input, init).text())
    return new Response(frames.map((frame) => `data: ${frame}\n\n`).join(''), {
      headers: { 'content-type': 'text/event-stream' },
    })
  }
}

const frames = [
  chunk([{ index: 0, delta: { role: 'assistant', content: 'Done.' }, finish_reason: null }]),
  chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
  '[DONE]',
]

function chunk(choices: unknown[]): string {
  return JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', choices })
}
