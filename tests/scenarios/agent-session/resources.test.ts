import { allTools, openCodingAgent } from '@tapetree/agent'
import { expandPrompt } from '@tapetree/agent/run'
import { loadResources, type Resources } from '@tapetree/agent/settings'
import { ExtensionHost, type Extension } from '@tapetree/agent/extensions'
import { script } from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { finish, linesOf, openAgent, pathOf } from './opened-agent.ts'

const reviewSkill = '---\nname: review\ndescription: Reviews code.\n---\nLook for errors first.'

function folderWith(files: Record<string, string>): string {
  const folder = temporaryFolder()
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  return folder
}

/** What a user has whose home is this folder. */
function resourcesIn(folder: string, host?: ExtensionHost): Promise<Resources> {
  return loadResources({
    cwd: folder,
    home: folder,
    configFolder: join(folder, 'config'),
    isTrusted: false,
    extraSkillFolders: host?.skillFolders ?? [],
    extraTemplateFolders: host?.templateFolders ?? [],
  })
}

async function openHost(extension: Extension, cwd = temporaryFolder()): Promise<ExtensionHost> {
  const host = await ExtensionHost.open({ cwd, extensions: [{ name: 'extra', extension }] })
  onTestFinished(() => host.close())
  return host
}

verifies(
  ['agent-session/6.3 skills'],
  '/skill:name becomes the text of that skill between skill tags, with what was typed behind it',
  async () => {
    const folder = folderWith({ '.agents/skills/review/SKILL.md': reviewSkill })
    const resources = await resourcesIn(folder)
    const { agent, model } = await openAgent({
      script: script().text('ok'),
      expand: (typed) => Promise.resolve(expandPrompt(typed, resources)),
    })
    await finish(agent, '/skill:review main.go, please')
    const [said = ''] = await pathOf(agent)
    expect(said).toMatch(/^user: <skill name="review"[^]*Look for errors first\.[^]*<\/skill>\n\nmain\.go, please$/)
    expect(said).not.toContain('description:')
    expect(JSON.stringify(model.requests[0])).toContain('Look for errors first.')
    await expect(agent.prompt('/skill:none')).rejects.toThrow('There is no skill none.')
  },
)

verifies(
  ['agent-session/6.3 templates'],
  'a slash command that is a template becomes its text with the arguments in their places, and any other goes out as typed',
  async () => {
    const template = 'Port $1 to ${2:-Rust}; mind $ARGUMENTS.'
    const resources = await resourcesIn(folderWith({ 'config/prompts/port.md': template }))
    const { agent } = await openAgent({
      script: script().text('1').step().text('2').step().text('3'),
      expand: (typed) => Promise.resolve(expandPrompt(typed, resources)),
    })
    for (const typed of ['/port "main file" Go', '/port x', '/usr/bin is full']) await finish(agent, typed)
    expect((await pathOf(agent)).filter((line) => line.startsWith('user:'))).toEqual([
      'user: Port main file to Go; mind "main file" Go.',
      'user: Port x to Rust; mind x.',
      'user: /usr/bin is full',
    ])
  },
)

verifies(
  ['agent-session/8 commands'],
  'a slash command that an extension registers is run when it is typed, and answers the user or says what the agent is asked',
  async () => {
    const cwd = folderWith({
      'extension.js': `export default (api) => {
        api.registerCommand({
          name: 'audit',
          description: 'Audits a file.',
          run: (args) => (args === '' ? { say: 'Which file?' } : { prompt: 'Audit ' + args + ' line by line.' }),
        })
        api.registerProvider({
          id: 'own',
          models: [{ id: 'calm', limits: { contextTokens: 100000, outputTokens: 4000 } }],
          async *stream() {
            yield { type: 'text_delta', part: 0, text: 'All is well.' }
            yield { type: 'finish', reason: 'stop' }
          },
        })
      }`,
    })
    await using opened = await openCodingAgent({
      store: memoryStore(),
      cwd,
      home: cwd,
      env: { PATH: process.env['PATH'] },
      flags: { extensions: [join(cwd, 'extension.js')], model: 'own/calm' },
    })
    const { session: agent } = opened
    expect(await agent.prompt('/audit')).toEqual({ type: 'handled', runId: null, say: 'Which file?' })
    expect(await pathOf(agent)).toEqual([])
    await finish(agent, '/audit main.go')
    expect((await pathOf(agent)).slice(-2)).toEqual(['user: Audit main.go line by line.', 'assistant: All is well.'])
  },
)

verifies(
  ['agent-session/8 hooks', 'agent-session/8 host'],
  'an extension changes the system prompt and adds a message before a run, and hears of each turn',
  async () => {
    const heard: string[] = []
    const host = await openHost((api) => {
      api.on('beforeAgentStart', ({ systemPrompt, prompt }) => ({
        systemPrompt: `${systemPrompt} Be brief.`,
        message: `By the way, "${prompt}" was said before.`,
      }))
      api.on('turnStart', ({ turn }) => void heard.push(`turn ${turn} starts`))
      api.on('turnEnd', ({ turn }) => void heard.push(`turn ${turn} ends`))
    })
    const steps = script().toolCall('a', 'read').step().text('ok')
    const { agent, model } = await openAgent({ script: steps, hooks: host.hooks })
    await finish(agent, 'Go on.')
    expect(model.requests.map(({ system }) => system)).toEqual(Array(2).fill('You are a test. Be brief.'))
    expect((await pathOf(agent)).slice(0, 2)).toEqual(['custom: By the way, "Go on." was said before.', 'user: Go on.'])
    expect(heard).toEqual(['turn 1 starts', 'turn 1 ends', 'turn 2 starts', 'turn 2 ends'])
  },
)

verifies(
  ['agent-session/8 hooks'],
  'hooks change the prompt of the user, and the instructions between turns; the log has both texts and rebuilds each request',
  async () => {
    const ended: string[] = []
    const host = await openHost((api) => {
      api.on('beforeAgentStart', ({ prompt }) => ({ prompt: `${prompt} (in French)` }))
      api.on('turnStart', ({ turn, systemPrompt }) => {
        if (turn === 2) return { systemPrompt: `${systemPrompt} Hurry.`, message: 'The last turn.' }
        return undefined
      })
      api.on('turnEnd', ({ turn, systemPrompt }) => {
        ended.push(systemPrompt)
        return turn === 1 ? { message: 'One turn is over.' } : undefined
      })
    })
    const steps = script().toolCall('a', 'read').step().text('ok').step().text('again').step().text('queued')
    const { agent, model, events } = await openAgent({ script: steps, hooks: host.hooks })
    await finish(agent, 'Go on.')
    expect(model.requests.map(({ system }) => system)).toEqual(['You are a test.', 'You are a test. Hurry.'])
    expect(ended).toEqual(['You are a test.', 'You are a test. Hurry.'])
    expect((await pathOf(agent)).filter((said) => !said.startsWith('tool'))).toEqual([
      'user: Go on. (in French)',
      'assistant: [read a]',
      'custom: One turn is over.',
      'custom: The last turn.',
      'assistant: ok',
    ])
    const [changed] = linesOf(events, 'custom')
    const said = linesOf(events, 'message').find(({ message }) => message.role === 'user')
    expect(changed?.custom).toEqual({
      customType: 'changed_prompt',
      data: { prompt: 'Go on.', message_id: said?.id, changed_by: ['extra'] },
    })
    // The next run begins with the system prompt of the settings. A queued message is edited before it is delivered.
    const outcome = await agent.prompt('And now?')
    await agent.followUp('Then this.')
    if (outcome.type === 'started') await outcome.run.done
    await agent.untilIdle()
    expect(model.requests[2]?.system).toBe('You are a test.')
    expect((await pathOf(agent)).slice(-3, -1)).toEqual(['user: Then this. (in French)', 'assistant: queued'])
    const edit = linesOf(events, 'submission').find(({ submission }) => submission.action === 'edit')
    expect([edit?.submission, edit?.cause?.client]).toMatchObject([
      { message: 'Then this. (in French)' },
      'extension:extra',
    ])
    // The log alone rebuilds every request.
    const leaves = linesOf(events, 'message').flatMap(({ request }) => (request ? [request.leafId] : []))
    const contexts = await Promise.all(leaves.map((leafId) => agent.session.getContext({ leafId })))
    expect(contexts.map(({ system }) => system?.prompt)).toEqual(model.requests.map(({ system }) => system))
    expect(contexts.map(({ messages }) => messages.map(({ message }) => message))).toEqual(
      model.requests.map(({ messages }) => messages),
    )
  },
)

verifies(
  ['agent-session/8 resources'],
  'skills, templates and tools that an extension brings are used like those of the user',
  async () => {
    const folder = folderWith({ 'skills/review/SKILL.md': reviewSkill, 'prompts/sum.md': 'Sum up $1.' })
    const host = await openHost((api) => {
      api.registerSkills('skills')
      api.registerTemplates('prompts')
      api.registerTool({
        name: 'shout',
        description: 'Says it loudly.',
        inputSchema: { type: 'object', properties: { words: { type: 'string' } }, required: ['words'] },
        run: ({ words }) => String(words).toUpperCase(),
      })
    }, folder)
    const resources = await resourcesIn(folder, host)
    const calls = script().toolCall('a', 'shout', { words: 'done' }).toolCall('b', 'shout', { words: 7 })
    const { agent } = await openAgent({
      script: calls.step().text('1').step().text('2'),
      tools: host.withTools(allTools()),
      expand: (typed) => Promise.resolve(expandPrompt(typed, resources)),
    })
    await finish(agent, '/sum it')
    await finish(agent, '/skill:review')
    const path = await pathOf(agent)
    expect([path[0], path[2]]).toEqual(['user: Sum up it.', 'tool: a DONE'])
    expect(path[3]).toMatch(/^tool: b failed: /)
    expect(path.at(-2)).toContain('Look for errors first.')
  },
)
