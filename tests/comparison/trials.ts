// What happens to each program. The model, the outside world and the accident are the same for every library.
import type { FakeAnswer } from '@tapetree/agent/testing'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Contender, Program } from './contenders.ts'
import { brokenCall, call, say, Stage, type Conversation } from './stage.ts'

export interface Trial {
  /** What happened, as a sentence for the table. */
  outcome: string
  /** What went wrong, with the output of the program. */
  details: string[]
}

export const trials: Record<Program, (contender: Contender, folder: string) => Promise<Trial>> = {
  'support-bot': refundOnce,
  'eval-harness': forkFifty,
  'two-screens': leaveAndReturn,
  'structured-answer': abortAndContinue,
}

/** The bot is killed while the shop makes the refund, and started again. */
async function refundOnce(contender: Contender, folder: string): Promise<Trial> {
  await using stage = await Stage.open(contender, { folder, decide: supportModel })
  const [file = ''] = contender.files('support-bot')
  const args = ['customer-7', 'My lamp, order 7, is broken. Refund it.']
  const first = await stage.start(file, { args })
  await Promise.race([stage.world.refunding, first.ended])
  first.child.kill('SIGKILL')
  await first.ended
  const asked = stage.provider.requests.length
  const second = await stage.start(file, { args })
  const code = await second.end()
  const refunds = stage.world.calls.filter((path) => path.endsWith('/refund')).length
  const [firstRequest] = stage.provider.requests.slice(asked)
  const told = JSON.stringify(firstRequest?.body ?? '')
  const knows = /may have taken effect/i.test(told)
    ? 'the model is told that it may have taken effect'
    : told.includes('refund_order","input') || /tool_use[^}]*refund_order/.test(told)
      ? 'the model sees a call without a real result'
      : 'the model knows nothing of the first attempt'
  const answered = code === 0 && second.lines.length > 0 ? 'the customer gets an answer' : 'the program fails'
  return {
    outcome: `${counted(refunds, 'refund')}; ${knows}; ${answered}`,
    details: [...second.lines, second.errors, first.errors],
  }
}

function supportModel({ calls, results, tools }: Conversation): FakeAnswer {
  const [lookUp, refundTool] = [toolIn(tools, 'look_up_order'), toolIn(tools, 'refund_order')]
  if (lookUp === undefined || refundTool === undefined) return say('OK.')
  const refund = calls.findLast(({ name }) => name === refundTool)
  if (!calls.some(({ name }) => name === lookUp)) return call(lookUp, { order: '7' })
  if (!refund) return call(refundTool, { order: '7' })
  return say(results.get(refund.id) === 'Refunded.' ? 'You have your money back.' : 'Let me ask a colleague.')
}

/** Some libraries put the name of a server before the name of a tool. */
function toolIn(tools: readonly string[], name: string): string | undefined {
  return tools.find((each) => each.endsWith(name))
}

const samples = 50

/** Fifty sessions; each is forked after the measurement and continued by another model. */
async function forkFifty(contender: Contender, folder: string): Promise<Trial> {
  await using stage = await Stage.open(contender, { folder, decide: evalModel })
  const program = await stage.start(contender.files('eval-harness')[0] ?? '')
  // A library that starts a process for each session takes minutes.
  const code = await program.end(20 * 60_000)
  const judged = program.lines.flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Judged] : []))
  const right = judged.filter(({ first, other }) => first === 'sonnet: fine' && other === 'opus: fine')
  const measured = stage.world.calls.length
  const kept = await filesWith(folder, 'sonnet: fine')
  const outcome =
    `${right.length} of ${samples} forks answered; ${counted(measured, 'measurement')}; ` +
    (kept >= samples ? 'every first answer is still stored' : `${samples - kept} first answers are lost`)
  return { outcome, details: [`exit code ${code}`, program.errors, ...program.lines.slice(0, 3)] }
}

interface Judged {
  first: string
  other: string
}

function evalModel({ calls, tools }: Conversation, { model, body }: { model: string; body: unknown }): FakeAnswer {
  const [, sample = 'sample-0'] = /Measure (sample-\d+)/.exec(JSON.stringify(body)) ?? []
  const tool = toolIn(tools, 'measure')
  if (calls.length === 0 && tool !== undefined) return call(tool, { sample })
  return say(`${model.includes('opus') ? 'opus' : 'sonnet'}: `, 'fine')
}

/** Number of files under the folder that contain a text. */
async function filesWith(folder: string, text: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const contents = await Promise.all(
    files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'utf8').catch(() => '')),
  )
  return contents.filter((content) => content.includes(text)).length
}

const words = Array.from({ length: 60 }, (_, index) => `word${index} `)
const answer = words.join('')

/** Two screens watch an answer; one of them leaves in the middle and returns before the end. */
async function leaveAndReturn(contender: Contender, folder: string): Promise<Trial> {
  const decide = (): FakeAnswer => ({ ...say(...words), paceMs: 60 })
  await using stage = await Stage.open(contender, { folder, decide })
  const [serverFile = '', screenFile = ''] = contender.files('two-screens')
  const server = await stage.start(serverFile)
  await server.printed(() => true)
  const address = server.lines[0] ?? ''
  const phone = await stage.start(screenFile, { args: [address] })
  const laptop = await stage.start(screenFile, { args: [address, 'Count.'] })
  const shows = (place: number) => (line: string) => line.includes(`word${place} `)
  const saw = await phone.printed(shows(10))
  phone.child.kill('SIGKILL')
  await laptop.printed(shows(25))
  const returned = await stage.start(screenFile, { args: [address] })
  await laptop.printed(shows(59))
  const caughtUp = await returned.printed((line) => textIn(line) === answer, 5000)
  const draws = [phone, laptop, returned].map(({ lines }) => lines.flatMap((line) => textIn(line) ?? []))
  const wrong = draws.flat().filter((text) => !answer.startsWith(text) && text !== answer.trimEnd()).length
  const ends = draws[1]?.at(-1)?.trimEnd() === answer.trimEnd()
  const outcome = [
    saw && ends
      ? 'both screens follow'
      : saw
        ? 'the first screen does not get the whole answer'
        : 'the second screen sees nothing',
    caughtUp ? 'after the return the whole answer' : 'after the return the answer is incomplete',
    wrong === 0 ? 'no gap and no double' : `${counted(wrong, 'draw')} with a gap or a double`,
  ].join('; ')
  return {
    outcome,
    details: [server.errors, phone.errors, laptop.errors, returned.errors, ...returned.lines.slice(-2)],
  }
}

function textIn(line: string): string | undefined {
  try {
    return JSON.parse(line) as string
  } catch {
    return undefined
  }
}

/** An answer with a schema and a tool is aborted after its first text, then continued. */
async function abortAndContinue(contender: Contender, folder: string): Promise<Trial> {
  let isFirst = true
  const aborted = 'Oslo, as far as I know'
  const decide = ({ calls, tools }: Conversation): FakeAnswer => {
    const tool = toolIn(tools, 'weather')
    if (tool === undefined) return say('OK.')
    if (!calls.some(({ name }) => name === tool)) return call(tool, { city: 'Oslo' })
    const output = tools.find((name) => /^(?:json|structured_?output)$/i.test(name))
    const answer = (chunks: string[]): FakeAnswer => {
      if (output === undefined) return say(...chunks)
      return {
        type: 'answer',
        content: [{ type: 'tool_call', id: `toolu_output_${calls.length}`, name: output, chunks }],
      }
    }
    if (!isFirst) return answer(['{"city":"Oslo",', '"celsius":4}'])
    isFirst = false
    return { ...answer([`{"city":"${aborted}",`]), ending: { type: 'hang' } }
  }
  await using stage = await Stage.open(contender, { folder, decide })
  const program = await stage.start(contender.files('structured-answer')[0] ?? '')
  const code = await program.end()
  const isValid = program.lines.at(-1) === '{"city":"Oslo","celsius":4}'
  const runs = stage.world.calls.length
  const rejected = stage.provider.requests.filter((request) => brokenCall(request) !== undefined)
  const isKept = (await filesWith(folder, aborted)) > 0
  const outcome = [
    isValid ? 'the object is valid' : 'no object',
    `the tool ran ${runs === 1 ? 'once' : `${runs} times`}`,
    isKept ? 'the aborted text is stored' : 'the aborted text is lost',
    ...(rejected.length === 0 ? [] : [`${counted(rejected.length, 'request')} rejected by the provider`]),
  ].join('; ')
  return { outcome, details: [`exit code ${code}`, ...program.lines, program.errors] }
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
