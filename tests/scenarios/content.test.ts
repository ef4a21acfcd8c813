import { text, type Content, type Session } from '@tapetree/session'
import { expect } from 'vitest'
import { inEveryStore, type Place } from '../support/places.ts'
import { call, result, saidIn } from '../support/said.ts'
import { storedLine } from '../support/stored.ts'
import { verifies } from '../support/verifies.ts'

const png: Content = {
  type: 'image',
  image: { source: { type: 'base64', mediaType: 'image/png', data: 'iVBORw0KGgo=' } },
}

inEveryStore((place) => {
  verifies(
    ['session-manager/4.3 content-type', 'session-manager/4.3 content-tag', 'session-manager/4.3 one-part'],
    'a piece of content has a type and one part, under the name of its type',
    async () => {
      const blocks = await storedContent(place(), [
        text('a'),
        png,
        call('c1'),
        result('c0'),
        { type: 'reasoning', reasoning: { text: 'hm' } },
      ])
      expect(blocks.map((block) => Object.keys(block))).toEqual(
        ['text', 'image', 'tool_use', 'tool_result', 'reasoning'].map((type) => ['type', type]),
      )
      expect(blocks.map((block) => block['type'])).toEqual(['text', 'image', 'tool_use', 'tool_result', 'reasoning'])
    },
  )

  verifies(
    ['session-manager/4.3 type-text', 'session-manager/4.3 part-text', 'session-manager/4.3 text-content'],
    'text is stored as text with its content',
    async () => {
      expect(await storedContent(place(), [text('hello')])).toEqual([{ type: 'text', text: { content: 'hello' } }])
    },
  )

  verifies(
    ['session-manager/4.3 type-image', 'session-manager/4.3 part-image', 'session-manager/4.3 image-source'],
    'an image is stored as an image with its source',
    async () => {
      expect(await storedContent(place(), [png])).toEqual([
        { type: 'image', image: { source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } } },
      ])
    },
  )

  verifies(
    ['session-manager/4.3 image-source-type', 'session-manager/4.3 image-media-type', 'session-manager/4.3 image-data'],
    'the source of an image is base64, a url or a blob, and comes back as it was given',
    async () => {
      const { store } = place()
      const session = await store().create()
      const bytes = Uint8Array.of(1, 2, 3)
      const blob = await session.putBlob(bytes)
      const sources = [
        { type: 'base64', mediaType: 'image/png', data: 'AAAA' },
        { type: 'url', mediaType: 'image/jpeg', data: 'https://example.com/cat.jpg' },
        { type: 'blob', mediaType: 'image/webp', ...blob },
      ] as const
      const content = sources.map((source): Content => ({ type: 'image', image: { source } }))
      await session.appendMessage('user', content)
      await session.close()
      const again = await store().open(session.id)
      expect((await again.getContext()).messages[0]?.message.content).toEqual(content)
      expect(new Uint8Array(await again.getBlob(blob.sha256))).toEqual(bytes)
    },
  )

  verifies(
    ['session-manager/4.3 type-tool-use', 'session-manager/4.3 part-tool-use', 'session-manager/4.3 tool-use-input'],
    'a call is stored as tool_use, and the names inside its input are not touched',
    async () => {
      const input = { filePath: 'main.go', line_number: 3, nested: { toolUseId: 'x', is_error: [] } }
      expect(await storedContent(place(), [call('c1', 'edit', input)])).toEqual([
        { type: 'tool_use', tool_use: { id: 'c1', name: 'edit', input } },
      ])
    },
  )

  verifies(
    [
      'session-manager/4.3 tool-use-id',
      'session-manager/4.3 tool-use-name',
      'session-manager/4.3 tool-result-tool-use-id',
    ],
    'a result is matched to its call by tool_use_id and stands directly behind the message that asked',
    async () => {
      const session = await place().store().create()
      await session.appendMessage('assistant', [call('c1', 'read'), call('c2', 'list')])
      await session.appendMessage('user', [text('hurry')])
      await session.appendMessage('tool', [result('c2', 'two')])
      await session.appendMessage('tool', [result('c1', 'one')])
      expect(await saidIn(session)).toEqual(['assistant: [c1] [c2]', 'tool: c1=one', 'tool: c2=two', 'user: hurry'])
    },
  )

  verifies(
    [
      'session-manager/4.3 type-tool-result',
      'session-manager/4.3 part-tool-result',
      'session-manager/4.3 tool-result-content',
    ],
    'a result is stored as tool_result; its content is a string or blocks',
    async () => {
      const blocks: Content[] = [text('see'), png]
      const stored = await storedContent(place(), [
        result('c1', 'plain'),
        { type: 'tool_result', toolResult: { toolUseId: 'c2', content: blocks } },
      ])
      expect(stored).toEqual([
        { type: 'tool_result', tool_result: { tool_use_id: 'c1', content: 'plain' } },
        {
          type: 'tool_result',
          tool_result: {
            tool_use_id: 'c2',
            content: [
              { type: 'text', text: { content: 'see' } },
              { type: 'image', image: { source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } } },
            ],
          },
        },
      ])
    },
  )

  verifies(
    ['session-manager/4.3 tool-result-is-error'],
    'a result says whether its call failed, and may leave it out',
    async () => {
      const session = await place().store().create()
      await session.appendMessage('assistant', [call('c1'), call('c2'), call('c3')])
      const results = ([true, false, undefined] as const).map((isError, index): Content => ({
        type: 'tool_result',
        toolResult: { toolUseId: `c${index + 1}`, content: '', ...(isError !== undefined && { isError }) },
      }))
      const id = await session.appendMessage('tool', results)
      const { content } = (await storedLine(session, id))['message'] as { content: Record<string, unknown>[] }
      expect(content.map((block) => block['tool_result'])).toEqual([
        { tool_use_id: 'c1', is_error: true, content: '' },
        { tool_use_id: 'c2', is_error: false, content: '' },
        { tool_use_id: 'c3', content: '' },
      ])
    },
  )

  verifies(['session-manager/5.1 file-as-text'], 'a file inside of a text is kept to the last character', async () => {
    const session = await place().store().create()
    const words = 'Analyze:\n<file name="main.go">\npackage main\r\n\tfunc main() {}\n</file>'
    await session.appendMessage('user', [text(words)])
    expect(await saidIn(session)).toEqual([`user: ${words}`])
  })

  verifies(
    ['session-manager/5.1 file-as-tool-result'],
    'a file that a tool read is its result, also where it is too large for a line',
    async () => {
      const { store } = place()
      const session = await store().create()
      const file = 'package main // ☂\n'.repeat(40_000)
      await session.appendMessage('assistant', [call('c1', 'read_file', { path: 'main.go' })])
      const id = await session.appendMessage('tool', [result('c1', file)])
      await session.close()
      const again = await store().open(session.id)
      expect(await saidIn(again)).toEqual(['assistant: [c1]', `tool: c1=${file}`])
      expect(JSON.stringify(await storedLine(again, id)).length).toBeLessThan(192 * 1024)
    },
  )

  verifies(
    ['session-manager/5.1 example-text-with-file'],
    'the example of a text with a file loads as it stands in the document',
    async () => {
      // The document shows it over several lines; a log has it on one.
      const example = `{"type":"message","id":"msg-123","parent_id":"msg-122","timestamp":"2024-01-01T12:00:00Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Analyze this file:\\n<file name=\\"main.go\\">\\npackage main\\n...</file>"}}]}}`
      const session = await place().load([
        '{"type":"session","id":"s","version":1,"timestamp":"2024-01-01T10:00:00Z"}',
        '{"type":"message","id":"msg-122","parent_id":null,"timestamp":"2024-01-01T11:00:00Z","message":{"role":"assistant","content":[{"type":"text","text":{"content":"Yes?"}}]}}',
        example,
      ])
      expect(await saidIn(session)).toEqual([
        'assistant: Yes?',
        'user: Analyze this file:\n<file name="main.go">\npackage main\n...</file>',
      ])
    },
  )

  verifies(
    ['session-manager/5.2 normalizing', 'session-manager/5.2 openai-string', 'session-manager/5.2 openai-parts'],
    'the internal form of the text of OpenAI is what is stored and given back',
    async () => {
      expect(await storedContent(place(), [text('...')])).toEqual([{ type: 'text', text: { content: '...' } }])
    },
  )

  verifies(
    ['session-manager/5.2 anthropic-text', 'session-manager/5.2 google-text'],
    'several texts of Anthropic or Google stay several',
    async () => {
      const session = await place().store().create()
      await session.appendMessage('assistant', [text('one'), text('two')])
      expect((await session.getContext()).messages[0]?.message.content).toEqual([text('one'), text('two')])
    },
  )

  verifies(
    ['session-manager/5.2 google-inline-data'],
    'the inline data of Google is an image with its media type and bytes',
    async () => {
      const session = await place().store().create()
      await session.appendMessage('user', [png])
      expect((await session.getContext()).messages[0]?.message.content).toEqual([png])
    },
  )
})

/** The content of one message as it is stored. */
async function storedContent(place: Place, content: Content[]): Promise<Record<string, unknown>[]> {
  const session: Session = await place.store().create()
  const id = await session.appendMessage('assistant', content)
  return ((await storedLine(session, id))['message'] as { content: Record<string, unknown>[] }).content
}
