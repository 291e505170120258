"""Language and embedding models of a few thousand random weights, saved as folders like any other."""

import torch

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"]
SENTENCES = [
    "Rate how similar two sentences are.",
    "Score: 3.5 Score: 2 Score: 4.25",
    "Sentence 1: A dog runs.",
]


def tokenizer(folder, *, template=TEMPLATE):
    """Return a byte-level tokenizer, so that it knows any text, and the size of its vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(SENTENCES, trainer)
    whole = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<|pad|>", eos_token="<|end|>")
    whole.chat_template = template
    whole.save_pretrained(folder)
    return len(whole)


def language_model(folder, family, *, positions=4096, template=TEMPLATE, seed=0):
    """Save a model of `family` llama or qwen2, published with sampling settings, as the real ones are."""
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    sizes = {
        "vocab_size": tokenizer(folder, template=template),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": positions,
        "eos_token_id": 1,
        "initializer_range": 0.6,  # or every answer would be one token over and over
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = (
            LlamaForCausalLM(LlamaConfig(**sizes))
            if family == "llama"
            else Qwen2ForCausalLM(Qwen2Config(**sizes))
        )
    model.generation_config = GenerationConfig(
        do_sample=True, temperature=0.6, top_p=0.9, repetition_penalty=1.05, eos_token_id=[1]
    )
    model.save_pretrained(folder)
    return folder


def embedding_model(folder):
    """Save a BERT of width 16 with mean pooling, as sentence-transformers lays it out."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    letters = [chr(i) for i in range(33, 127)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    part = folder.with_name(f"{folder.name}-bert")
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=128, **names).save_pretrained(part)
    config = BertConfig(
        vocab_size=made.get_vocab_size(),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(part)
    transformer = Transformer(str(part))
    SentenceTransformer(modules=[transformer, Pooling(16)]).save(str(folder))
    return folder
