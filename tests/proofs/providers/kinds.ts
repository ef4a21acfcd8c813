import type { FakeApi } from '@tapetree/agent/testing'
import { eventsOf, type Loose } from './read-bytes.ts'

/** Kinds of events, blocks, items, members and ends that a stream has, as `<where> <kind>`. */
export function kindsIn(api: FakeApi, body: string): Set<string> {
  const { values, isDone } = eventsOf(Buffer.from(body))
  const kinds = new Set(values.flatMap((event) => scanners[api](event)))
  if (body.includes('\r\n')) kinds.add('wire crlf')
  if (/^:/m.test(body)) kinds.add('wire comment')
  if (api === 'openaiCompatible' && !isDone) kinds.add('wire no-done')
  return new Set([...kinds].map((kind) => `${api} ${kind}`))
}

const scanners: Record<FakeApi, (event: Loose) => string[]> = {
  anthropic: (event) => [
    `event ${event.type}`,
    ...(event.content_block ? [`block ${event.content_block.type}`] : []),
    ...(event.type === 'content_block_delta' ? [`delta ${event.delta.type}`] : []),
    ...membersOf('start-usage', event.message?.usage),
    ...(event.type === 'message_delta'
      ? [
          ...membersOf('end', event),
          ...membersOf('end-delta', event.delta),
          ...membersOf('usage', event.usage),
          `stop ${event.delta.stop_reason}`,
        ]
      : []),
  ],
  openai: (event) => [
    `event ${event.type}`,
    ...(event.item ? [`item ${event.item.type}`] : []),
    ...membersOf('usage', event.response?.usage),
    ...(event.type === 'response.created' ? [`tier ${event.response.service_tier}`] : []),
  ],
  google: (event) => [
    ...membersOf('top', event),
    ...membersOf('usage', event.usageMetadata),
    ...(event.candidates ?? []).flatMap((candidate: Loose) => [
      ...membersOf('candidate', candidate),
      ...(candidate.finishReason ? [`finish ${candidate.finishReason}`] : []),
      ...(candidate.content?.parts ?? []).map((part: Loose) => {
        const members = Object.keys(part).filter((member) => member !== 'x_new_member')
        return `part ${members.sort().join('+')}`
      }),
    ]),
  ],
  openaiCompatible: (event) => [
    ...membersOf('top', event),
    ...membersOf('usage', event.usage),
    ...(event.choices ?? []).flatMap((choice: Loose) => [
      ...membersOf('choice', choice),
      ...(choice.finish_reason ? [`finish ${choice.finish_reason}`] : []),
      ...Object.entries(choice.delta ?? {}).map(([member, value]) => `delta ${member}${value === null ? '=null' : ''}`),
      ...(choice.delta?.tool_calls ?? []).map((call: Loose) => {
        return `call ${Object.keys(call).sort().join('+')}(${Object.keys(call.function).sort().join('+')})`
      }),
    ]),
    ...(event.choices?.length === 0 ? [`no-choices ${event.usage ? 'usage' : 'nothing'}`] : []),
  ],
}

function membersOf(where: string, value: object | undefined): string[] {
  return Object.keys(value ?? {}).map((member) => `${where} ${member}`)
}

/**
 * The kinds that providers are known to send. The proof fails if it did not try one of them. Left out are failures, which other steps
 * play, and items of tools that OpenAI sends only to clients that offer them: shells, patches, programs, custom tools.
 */
const knownKinds: Record<FakeApi, Record<string, string>> = {
  anthropic: {
    event: 'message_start content_block_start content_block_delta content_block_stop message_delta message_stop ping',
    block:
      'text thinking redacted_thinking tool_use server_tool_use web_search_tool_result web_fetch_tool_result ' +
      'text_editor_code_execution_tool_result bash_code_execution_tool_result code_execution_tool_result ' +
      'tool_search_tool_result advisor_tool_result mcp_tool_use mcp_tool_result compaction fallback',
    delta: 'text_delta input_json_delta thinking_delta signature_delta citations_delta compaction_delta',
    'start-usage':
      'input_tokens output_tokens cache_creation_input_tokens cache_read_input_tokens service_tier cache_creation ' +
      'inference_geo server_tool_use',
    end: 'type delta usage context_management',
    'end-delta': 'stop_reason stop_sequence stop_details container',
    usage:
      'output_tokens input_tokens cache_creation_input_tokens cache_read_input_tokens server_tool_use iterations ' +
      'output_tokens_details',
    stop: 'end_turn tool_use max_tokens stop_sequence',
    wire: 'crlf comment',
  },
  openai: {
    event:
      'response.created response.in_progress response.queued response.completed response.incomplete ' +
      'response.output_item.added response.output_item.done response.content_part.added response.content_part.done ' +
      'response.output_text.delta response.output_text.done response.output_text.annotation.added ' +
      'response.function_call_arguments.delta response.function_call_arguments.done ' +
      'response.reasoning_summary_part.added response.reasoning_summary_part.done ' +
      'response.reasoning_summary_text.delta response.reasoning_summary_text.done ' +
      'response.reasoning_part.added response.reasoning_part.done response.reasoning_text.delta response.reasoning_text.done ' +
      'response.web_search_call.in_progress response.web_search_call.searching response.web_search_call.completed ' +
      'response.code_interpreter_call.in_progress response.code_interpreter_call_code.delta ' +
      'response.code_interpreter_call_code.done response.code_interpreter_call.interpreting ' +
      'response.code_interpreter_call.completed response.file_search_call.in_progress ' +
      'response.file_search_call.searching response.file_search_call.completed response.mcp_list_tools.in_progress ' +
      'response.mcp_list_tools.completed response.mcp_call.in_progress response.mcp_call_arguments.delta ' +
      'response.mcp_call_arguments.done response.mcp_call.completed response.image_generation_call.in_progress ' +
      'response.image_generation_call.generating response.image_generation_call.partial_image ' +
      'response.image_generation_call.completed ping',
    item:
      'message reasoning function_call web_search_call code_interpreter_call file_search_call image_generation_call ' +
      'mcp_list_tools mcp_call tool_search_call tool_search_output compaction',
    tier: 'default auto flex null',
    usage:
      'input_tokens input_tokens_details output_tokens output_tokens_details total_tokens cost cost_in_usd_ticks is_byok',
    wire: 'crlf comment',
  },
  google: {
    top: 'candidates usageMetadata modelVersion responseId createTime',
    candidate: 'content index finishReason groundingMetadata finishMessage urlContextMetadata',
    part:
      'text text+thought text+thoughtSignature functionCall functionCall+thoughtSignature executableCode ' +
      'codeExecutionResult executableCode+thoughtSignature thoughtSignature+toolCall thoughtSignature+toolResponse',
    usage:
      'promptTokenCount totalTokenCount promptTokensDetails candidatesTokenCount thoughtsTokenCount trafficType ' +
      'serviceTier cachedContentTokenCount cacheTokensDetails candidatesTokensDetails',
    finish: 'STOP MAX_TOKENS',
    wire: 'crlf comment',
  },
  openaiCompatible: {
    top:
      'choices created model id object system_fingerprint usage service_tier obfuscation provider citations ' +
      'search_results p stream_options x_groq prompt_filter_results generationId latency_checkpoint timings ' +
      'sla_metrics prompt_token_ids prompt_text moderation',
    choice:
      'index delta finish_reason logprobs native_finish_reason content_filter_results text seed matched_stop message ' +
      'token_ids stop_reason role',
    delta:
      'content content=null role role=null reasoning_content reasoning_content=null reasoning reasoning=null ' +
      'reasoning_details tool_calls tool_calls=null token_id token_id=null channel refusal=null provider_metadata ' +
      'executed_tools annotations index function_call=null',
    call: 'function+index(arguments) function+id+index+type(arguments+name)',
    'no-choices': 'usage nothing',
    finish: 'stop tool_calls length',
    usage:
      'prompt_tokens completion_tokens total_tokens cost cost_details is_byok prompt_tokens_details ' +
      'completion_tokens_details search_context_size queue_time prompt_time completion_time total_time ' +
      'prompt_cache_hit_tokens prompt_cache_miss_tokens cached_tokens num_sources_used cost_in_usd_ticks service_tier',
    wire: 'crlf comment no-done',
  },
}

/** What is new to each format: a sibling of every kind that the agent must skip. */
const unknownSiblings: Record<FakeApi, string> = {
  anthropic: 'event block delta stop-reason member',
  openai: 'event item member',
  google: 'part finish-reason member',
  openaiCompatible: 'event finish-reason member',
}

/** The kinds that were not among those tried. */
export function missingKinds(tried: ReadonlySet<string>): string[] {
  const known = Object.entries(knownKinds).flatMap(([api, places]) =>
    Object.entries(places).flatMap(([where, kinds]) => kinds.split(' ').map((kind) => `${api} ${where} ${kind}`)),
  )
  const unknown = Object.entries(unknownSiblings).flatMap(([api, kinds]) =>
    kinds.split(' ').map((kind) => `${api} unknown ${kind}`),
  )
  return [...known, ...unknown].filter((kind) => !tried.has(kind))
}
