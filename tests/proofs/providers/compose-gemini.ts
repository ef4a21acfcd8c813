import { Composer, type Json, type Wish } from './composer.ts'
import type { Draw } from './draw.ts'

export function composeGemini(wish: Wish, draw: Draw): Composer {
  const out = new Composer(wish, draw)
  const { mark, subject } = wish
  const top = (): Json => {
    const members = draw.some({
      modelVersion: subject.model,
      responseId: `r${mark}`,
      createTime: '2026-01-01T00:00:00Z',
    })
    return { ...members, ...out.unknown('top') }
  }
  const send = (part: Json): void =>
    out.event({
      candidates: [
        {
          content: { role: 'model', parts: [part], ...out.unknown('content') },
          ...draw.some({ index: 0 }, 0.7),
          ...out.unknown('candidate'),
        },
      ],
      ...top(),
    })
  const part = (data: Json): void => {
    send({ ...data, ...out.unknown('part') })
    for (const kind of out.siblings('part')) send(kind === 'nothing' ? {} : { [kind]: { depth: 3 } })
    for (const kind of out.siblings('event')) {
      if (kind === 'not-an-object') out.frame(`data: ${draw.pick(['null', '[]', '"x"', '1'])}`)
      else out.event({ [kind]: { text: 'not text' } })
    }
  }
  const isSigning = /gemini-3/.test(subject.model)
  const think = (): void => {
    for (const text of draw.pieces(draw.text(mark))) part({ text, thought: true })
  }
  const speak = (): void => {
    for (const text of draw.pieces(draw.text(mark))) part({ text })
  }
  let calls = 0
  const call = (): void => {
    const functionCall = {
      ...draw.some({ id: `fn_${mark}_${calls}` }, 0.5),
      name: out.toolName(),
      args: JSON.parse(out.input(calls)) as Json,
    }
    // Gemini 3 signs the first call of an answer.
    part({ functionCall, ...(isSigning && calls === 0 && { thoughtSignature: out.signature() }) })
    calls += 1
  }
  const isEmpty = wish.ending === 'empty'
  const parts: (() => void)[] = []
  if (wish.hasReasoning) parts.push(think)
  if (wish.hasReasoning && draw.chance(0.2)) parts.push(think)
  if (draw.chance(0.1))
    parts.push(() => {
      part({ executableCode: { language: 'PYTHON', code: 'print(1)' } })
      part({ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } })
    })
  if (isSigning && draw.chance(0.1))
    parts.push(() => {
      part({ executableCode: { language: 'PYTHON', code: 'print(2)' }, thoughtSignature: out.signature() })
      part({ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '2\n' } })
    })
  if (isSigning && draw.chance(0.1))
    parts.push(() => {
      const toolType = 'GOOGLE_SEARCH_WEB'
      part({ toolCall: { toolType, args: { queries: ['x'] }, id: `tc_${mark}` }, thoughtSignature: out.signature() })
      part({ toolResponse: { toolType, response: {}, id: `tc_${mark}` }, thoughtSignature: out.signature() })
    })
  if (!isEmpty && (wish.calls === 0 || draw.chance(0.6))) parts.push(speak)
  if (!isEmpty && draw.chance(0.1)) parts.push(speak)
  for (let count = wish.calls; count > 0; count -= 1) parts.push(call)
  out.inOrder(parts)
  if (isSigning && !isEmpty && wish.calls === 0 && draw.chance(0.5))
    part({ text: '', thoughtSignature: out.signature() })
  const thoughts = wish.hasReasoning ? draw.integer(1, 90) : undefined
  const [prompt, said] = [draw.integer(1, 5000), draw.integer(1, 500)]
  const usage = {
    promptTokenCount: prompt,
    candidatesTokenCount: said,
    totalTokenCount: prompt + said + (thoughts ?? 0),
    ...(thoughts !== undefined && { thoughtsTokenCount: thoughts }),
    ...draw.some({
      cachedContentTokenCount: draw.integer(0, prompt),
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: prompt }],
      cacheTokensDetails: [{ modality: 'TEXT', tokenCount: 1 }],
      candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: said }],
      trafficType: 'ON_DEMAND',
      serviceTier: 'standard',
      toolUsePromptTokenCount: 0,
      toolUsePromptTokensDetails: [{ modality: 'TEXT', tokenCount: 0 }],
    }),
    ...out.unknown('usage'),
  }
  if ((wish.ending === 'failed' && draw.chance(0.5)) || wish.ending === 'quota') {
    if (draw.chance(0.3)) out.damaged()
    else out.event({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } })
    return out
  }
  const unknown = out.unknownEnd('finish-reason')
  const known = wish.calls === 0 && draw.chance(0.1) ? 'MAX_TOKENS' : 'STOP'
  const failure = wish.ending === 'failed' ? 'MALFORMED_FUNCTION_CALL' : undefined
  const refusal = wish.ending === 'refused' ? draw.pick(['SAFETY', 'PROHIBITED_CONTENT', 'RECITATION']) : undefined
  const finish = failure ?? refusal ?? unknown ?? known
  const candidate = { ...draw.some({ content: { role: 'model', parts: [] } }, 0.7), finishReason: finish, index: 0 }
  out.event({
    candidates: [
      {
        ...candidate,
        ...draw.some({ finishMessage: 'done', groundingMetadata: {}, urlContextMetadata: { urlMetadata: [] } }, 0.1),
      },
    ],
    usageMetadata: usage,
    ...top(),
  })
  return out
}
