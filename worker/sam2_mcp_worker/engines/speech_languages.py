"""The languages that Whisper and its kin know: codes of ISO 639 and English names, in which some endpoints answer."""

from __future__ import annotations

from types import MappingProxyType

_NAMES = """
af Afrikaans, am Amharic, ar Arabic, as Assamese, az Azerbaijani, ba Bashkir, be Belarusian, bg Bulgarian, bn Bengali,
bo Tibetan, br Breton, bs Bosnian, ca Catalan, cs Czech, cy Welsh, da Danish, de German, el Greek, en English,
es Spanish, et Estonian, eu Basque, fa Persian, fi Finnish, fo Faroese, fr French, gl Galician, gu Gujarati, ha Hausa,
haw Hawaiian, he Hebrew, hi Hindi, hr Croatian, ht Haitian Creole, hu Hungarian, hy Armenian, id Indonesian,
is Icelandic, it Italian, ja Japanese, jw Javanese, ka Georgian, kk Kazakh, km Khmer, kn Kannada, ko Korean, la Latin,
lb Luxembourgish, ln Lingala, lo Lao, lt Lithuanian, lv Latvian, mg Malagasy, mi Maori, mk Macedonian, ml Malayalam,
mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Myanmar, ne Nepali, nl Dutch, nn Nynorsk, no Norwegian, oc Occitan,
pa Punjabi, pl Polish, ps Pashto, pt Portuguese, ro Romanian, ru Russian, sa Sanskrit, sd Sindhi, si Sinhala, sk Slovak,
sl Slovenian, sn Shona, so Somali, sq Albanian, sr Serbian, su Sundanese, sv Swedish, sw Swahili, ta Tamil, te Telugu,
tg Tajik, th Thai, tk Turkmen, tl Tagalog, tr Turkish, tt Tatar, uk Ukrainian, ur Urdu, uz Uzbek, vi Vietnamese,
yi Yiddish, yo Yoruba, yue Cantonese, zh Chinese
"""

LANGUAGES = MappingProxyType(
    {code: name for code, _, name in (item.strip().partition(" ") for item in _NAMES.split(","))}
)
"""Code to name. A forced language has to be one of these."""

_CODES = {name.lower(): code for code, name in LANGUAGES.items()}


def language_code(told: object) -> str | None:
    """The code of what an endpoint calls a language: `ko`, `ko-KR`, `Korean`; None for what nobody knows."""
    if not isinstance(told, str):
        return None
    name = told.strip().lower()
    code = name.replace("_", "-").partition("-")[0]
    return code if code in LANGUAGES else _CODES.get(name)
